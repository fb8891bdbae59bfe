"""The explorer of shards in a real browser: what is held and sent is what plans and costs say."""

from dataclasses import asdict
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from browser_tabs import NEEDED, ON_BOTH, fits
from explorer_page import (
    by_keys,
    each_of,
    in_the_address,
    light_and_dark,
    linked_to,
    page_of,
    values_of,
)
from playwright.sync_api import Browser, Page as Tab
from stepper_page import press, said, spilled

from common.chapters.strategies import STRATEGIES
from common.parallel.ledger import KEPT, MOVED
from common.parallel.scenarios import Scenario
from notebooks.drawing import explore_shards

pytestmark = NEEDED

HELD = [kind for kind in KEPT if kind != "activations"]

SCENARIOS = [
    Scenario(
        strategy=strategy, devices=k, replicas=replicas, microbatches=m, depth=depth, schedule=order
    )
    for (strategy, (k, replicas), m, depth), order in zip(
        product(STRATEGIES, [(1, 1), (2, 1), (3, 1), (4, 2), (8, 1), (6, 3)], [1, 3], [0, 1, 4]),
        ["1f1b", "gpipe", "naive", "1f1b", "1f1b"] * 100,
        strict=False,
    )
]

READ = """(root, values) => {
    const settings = {net: 'lenet', ...values};
    if (plans.refusal(settings)) return root.querySelector('.explorer-words').textContent;
    const walk = moments(plans.planOf(settings));
    const most = kind => walk[0].held.map((_, device) =>
        Math.max(...walk.map(each => each.held[device][kind])));
    const total = kind => walk.reduce((sum, each) => sum + (each.sent[kind] ?? 0), 0);
    const live = walk[0].inputs[Object.keys(walk[0].inputs)[0]].map((_, device) =>
        Math.max(...walk.flatMap(each => Object.values(each.inputs).map(of => of[device]))));
    return {
        held: Object.fromEntries(['weights', 'gradients', 'momentum'].map(x => [x, most(x)])),
        sent: Object.fromEntries(plans.MOVED.map(kind => [kind, total(kind)])),
        live, count: walk.length, first: walk[0].state, last: walk.at(-1).state,
        begin: walk[0].words,
        shown: root.querySelector('.explorer-words').textContent,
        slider: Number(root.querySelector('[name=moment]').max),
        waiting: walk.at(-1).inputs,
    };
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(explore_shards.fragment, tmp_path_factory.mktemp("page"))


def controls(scenario: Scenario) -> dict[str, Any]:
    names = ("strategy", "depth", "devices", "replicas", "microbatches", "schedule")
    return {name: value for name, value in asdict(scenario).items() if name in names}


def test_a_step_holds_and_sends_what_costs_say(page: str, tab: Tab) -> None:
    tab.goto(page)
    found = each_of(tab, "shards", [controls(each) for each in SCENARIOS], READ)
    refused = 0
    for scenario, seen in zip(SCENARIOS, found, strict=True):
        if why := scenario.refusal():
            refused += 1
            assert seen == f"There is no such plan: {why}."
            continue
        plan, usage = scenario.plan(), scenario.usage()
        for kind in HELD:
            peak = [size // 4 for size in usage.peak[kind]]
            assert seen["held"][kind] * plan.replicas == peak, (scenario, kind)
        sent = {kind: sum(usage.sent[kind]) // 4 for kind in MOVED}
        assert seen["sent"] == sent, scenario
        assert seen["live"] * plan.replicas == usage.live, scenario
    assert refused == 4  # pipelines of 8 devices, where there are 4 or 5 layers


def test_a_step_begins_and_ends_with_what_the_plan_has(page: str, tab: Tab) -> None:
    tab.goto(page)
    some = SCENARIOS[::5]
    found = each_of(tab, "shards", [controls(each) for each in some], READ)
    for scenario, seen in zip(some, found, strict=True):
        if scenario.refusal():
            continue
        plan = scenario.plan()
        for moment in (seen["first"], seen["last"]):
            for kind, layouts in (("weights", plan.weights), ("momentum", plan.updated)):
                expected = {
                    name: [
                        [] if part is None else [{"part": asdict(part), "role": "kept"}]
                        for part in layout
                    ]
                    for name, layout in layouts.items()
                }
                assert moment[kind] == expected
            assert all(device == [] for each in moment["gradients"].values() for device in each)
        assert all(not any(each) for each in seen["waiting"].values())
        assert (seen["shown"], seen["slider"]) == (seen["begin"], seen["count"] - 1)


def test_what_is_filled_is_what_a_device_holds(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?shards.devices=3&shards.what=weights")
    areas = """all => all.map(each => each.getAttribute('width') * each.getAttribute('height'))"""
    filled = tab.locator(".explorer-stage .pic-cell").evaluate_all(areas)
    outlines = tab.locator(".explorer-stage .pic-ghost").evaluate_all(areas)
    assert len(filled) == len(outlines) == 3 * 8
    plan = Scenario(strategy="zero3", devices=3).plan()
    names = [name for layer in plan.layers for name in plan.tensors[layer]]
    shares = [a / b for a, b in zip(filled, outlines, strict=True)]
    sizes = {
        name: sum(part.stop - part.start for part in plan.weights[name] if part) for name in names
    }
    expected = []
    for device in range(3):
        for name in names:
            part = plan.weights[name][device]
            assert part
            expected.append((part.stop - part.start) / sizes[name])
    assert shares == pytest.approx(expected, abs=1e-6)


def test_buttons_and_keys_step_through_the_moments(page: str, tab: Tab) -> None:
    tab.goto(page)
    assert said(tab).startswith("Before the step: each device has a slice of the weights")
    press(tab, "next")
    assert said(tab).startswith("Forward, conv1: each device gathers the slices")
    press(tab, "last")
    assert said(tab).startswith("After the step")
    assert tab.locator("[name=next]").get_attribute("aria-disabled") == "true"
    press(tab, "next")
    assert said(tab).startswith("After the step")
    press(tab, "back")
    assert said(tab).startswith("Update: ")
    press(tab, "first")
    stage = tab.locator(".explorer-stage")
    for focus, key, begin in (
        (stage, "ArrowRight", "Forward, conv1"),
        (stage, "End", "After the step"),
        (stage, "ArrowLeft", "Update"),
        (stage, "Home", "Before the step"),
        (tab.locator("[name=moment]"), "ArrowRight", "Forward, conv1"),
        (tab.locator("button[name=next]"), "Enter", "Forward, conv2"),
        (tab.locator("button[name=next]"), "ArrowRight", "Forward, fc1"),
    ):
        focus.focus()
        tab.keyboard.press(key)
        assert said(tab).startswith(begin)


def test_zero3_sends_half_as_much_again(page: str, tab: Tab) -> None:
    tab.goto(page)
    assert "4.65\u00a0MB in the whole step" in tab.inner_text(".explorer-sent")
    tab.locator("[name=strategy]").select_option("zero2")
    assert "3.10\u00a0MB in the whole step" in tab.inner_text(".explorer-sent")


def test_another_plan_begins_at_its_first_moment(page: str, tab: Tab) -> None:
    tab.goto(page)
    press(tab, "last")
    tab.locator("[name=devices]").fill("3")
    assert said(tab).startswith("Before the step")
    assert tab.locator("[name=moment]").input_value() == "0"
    press(tab, "next")
    tab.locator("[name=what]").select_option("gradients")
    assert said(tab).startswith("Forward, conv1")


def test_the_address_has_what_was_chosen(page: str, tab: Tab) -> None:
    tab.goto(page)
    tab.locator("[name=strategy]").select_option("pipeline")
    tab.locator("[name=microbatches]").fill("3")
    for _ in range(4):
        press(tab, "next")
    in_the_address(tab, "strategy=pipeline", "microbatches=3", "moment=4")
    before, words = values_of(tab, "shards"), said(tab)
    tab.reload()
    assert (values_of(tab, "shards"), said(tab)) == (before, words)


def test_links_of_the_page_lead_to_what_they_say(page: str, tab: Tab) -> None:
    links = linked_to("shards")
    assert len(links) == 9
    for link in links:
        tab.goto(page + link)
        asked = parse_qsl(urlsplit(link).query, strict_parsing=True)
        values = values_of(tab, "shards")
        assert {key: values[key.removeprefix("shards.")] for key, _ in asked} == dict(asked)
        assert not said(tab).startswith("There is no such plan")


def test_nonsense_in_the_address_counts_as_nothing(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?shards.strategy=x&shards.devices=x&shards.moment=x&shards.what=x")
    assert values_of(tab, "shards")["strategy"] == "zero3"
    assert values_of(tab, "shards")["moment"] == "0"
    assert said(tab).startswith("Before the step: each device has a slice")
    tab.goto(f"{page}?shards.moment=9999&shards.devices=500")
    assert said(tab).startswith("After the step")


def test_a_plan_that_is_refused_says_why(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?shards.strategy=pipeline&shards.devices=8")
    assert said(tab) == (
        "There is no such plan: a pipeline of 8 devices needs as many stages, and the net can be "
        "cut into 4."
    )
    assert tab.locator(".explorer-stage").is_hidden()
    tab.locator("[name=depth]").fill("4")
    assert said(tab).startswith("Before the step")
    assert tab.locator(".explorer-stage svg").is_visible()


def test_every_control_works_by_keys(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?shards.strategy=pipeline")
    assert by_keys(tab, "shards") == []


@ON_BOTH
def test_nothing_is_wider_than_the_window(page: str, tab: Tab) -> None:
    tab.goto(page)
    for strategy, what in product(STRATEGIES, ("all", "weights")):
        values = {"strategy": strategy, "devices": 8, "depth": 4, "what": what, "microbatches": 4}
        each_of(tab, "shards", [values], "() => null")
        for _ in range(3):
            press(tab, "next")
            assert fits(tab)
            assert spilled(tab) == []
            stage = tab.locator(".explorer-stage")
            assert stage.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_colours_follow_the_reader_and_the_page(page: str, tab: Tab) -> None:
    tab.goto(page)
    light, dark, chosen_dark, chosen_light = light_and_dark(tab, "shards")
    assert light == chosen_light != dark == chosen_dark


def test_without_scripts_a_picture_stands_there(page: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(page)
    assert opened.locator(".explorer-still svg[role=img]").is_visible()
    assert opened.locator("select").first.is_hidden()
    context.close()
