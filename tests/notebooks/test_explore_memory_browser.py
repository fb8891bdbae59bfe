"""The explorer of memory in a real browser: its numbers are Python's, it reacts, and it fits."""

import random
from dataclasses import asdict
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
from stepper_page import ASSETS, said, spilled

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.parallel.ledger import KEPT, MOVED, Usage
from common.parallel.scenarios import NETS, OPTIMIZERS, PRECISIONS, Scenario
from notebooks.drawing import explore_memory

pytestmark = NEEDED

READ = """root => {
    const cells = name => [...root.querySelectorAll(`.explorer-${name} tbody tr`)].map(row =>
        [...row.children].map(each => each.textContent));
    return {
        words: root.querySelector('.explorer-words').textContent,
        numbers: root.querySelector('.explorer-exact').hidden ? null : cells('numbers'),
        compared: cells('comparison'),
        drawn: root.querySelectorAll('.explorer-stage svg').length,
    };
}"""

LAYOUTS = """(root, values) => {
    const settings = {...values, parameters: 1e6 * values.millions};
    if (plans.refusal(settings)) return null;
    const plan = plans.planOf(settings);
    return [plan.weights, plan.updated, plan.stages];
}"""


def drawn_scenario(rng: random.Random) -> Scenario:
    """A scenario that the page can show."""
    return Scenario(
        net=rng.choice(NETS),
        depth=rng.randint(0, 12),
        width=rng.choice([1, 3, 8, 64, 640, 1024]),
        parameters=10**6 * rng.choice([1, 7, 999, 7_000, 1_000_000]),
        layers=rng.choice([1, 2, 5, 32, 99, 100]),
        strategy=rng.choice(list(STRATEGIES)),
        devices=rng.choice([1, 2, 3, 4, 5, 6, 7, 12, 16]),
        replicas=rng.choice([1, 1, 1, 2, 3]),
        microbatches=rng.choice([1, 2, 3, 4, 7, 16]),
        schedule=rng.choice(list(SCHEDULES)),
        examples=rng.choice([1, 2, 5, 101, 256, 65536]),
        precision=rng.choice(list(PRECISIONS)),
        optimizer=rng.choice(list(OPTIMIZERS)),
    )


SCENARIOS = [drawn_scenario(random.Random(seed)) for seed in range(200)]


def controls(scenario: Scenario) -> dict[str, Any]:
    found = asdict(scenario)
    millions = found.pop("parameters") // 10**6
    del found["stages"]  # of equal work, here
    return {**found, "millions": millions}


def rows_of(usage: Usage) -> list[list[int]]:
    """A row for each device, as the page's table has them."""
    columns = [
        *(usage.peak[kind] for kind in KEPT),
        *(usage.sent[kind] for kind in MOVED),
        *(usage.received[kind] for kind in MOVED),
        usage.messages,
        usage.live,
    ]
    return [[device, *row] for device, row in enumerate(zip(*columns, strict=True))]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(explore_memory.fragment, tmp_path_factory.mktemp("page"))


def test_every_number_is_pythons(page: str, tab: Tab) -> None:
    tab.goto(page)
    found = each_of(tab, "memory", [controls(each) for each in SCENARIOS], READ)
    refused = 0
    for scenario, shown in zip(SCENARIOS, found, strict=True):
        if why := scenario.refusal():
            refused += 1
            assert shown["words"] == f"There is no such plan: {why}."
            assert shown["numbers"] is None
            continue
        numbers = [[int(cell.replace(",", "")) for cell in row] for row in shown["numbers"]]
        assert numbers == rows_of(scenario.usage()), scenario
        assert shown["drawn"] == 1
    assert 20 < refused < 100


def test_every_plan_is_pythons(page: str, tab: Tab) -> None:
    tab.goto(page)
    found = each_of(tab, "memory", [controls(each) for each in SCENARIOS[:100]], LAYOUTS)
    for scenario, shown in zip(SCENARIOS, found, strict=False):
        if scenario.refusal():
            assert shown is None
            continue
        plan, (weights, updated, stages) = scenario.plan(), shown
        for layouts, seen in ((plan.weights, weights), (plan.updated, updated)):
            expected = {
                name: [None if part is None else asdict(part) for part in layout]
                for name, layout in layouts.items()
            }
            assert seen == expected
            assert list(seen) == list(expected)
        assert stages == (plan.stages if plan.strategy == "pipeline" else [])


def shortened(size: int) -> str:
    """Three digits of a number of bytes."""
    unit, value = 0, float(size)
    while value >= 999.5:
        value, unit = value / 1000, unit + 1
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits if unit else 0}f}\u00a0{('B', 'KB', 'MB', 'GB', 'TB')[unit]}"


def test_all_strategies_stand_side_by_side(page: str, tab: Tab) -> None:
    tab.goto(page)
    tab.locator("[name=devices]").fill("6")
    tab.locator("[name=card]").select_option("other")
    tab.locator("[name=gigabytes]").fill("0.0025")
    ((found),) = each_of(tab, "memory", [{}], READ)
    for row, strategy in zip(found["compared"], STRATEGIES, strict=True):
        scenario = Scenario(strategy=strategy, devices=6)
        if why := scenario.refusal():
            assert row == [strategy, f"no: {why}"]
            continue
        usage = scenario.usage()
        most = max(sum(usage.peak[kind][i] for kind in KEPT) for i in range(6))
        sent = sum(map(sum, usage.sent.values()))
        fit = "yes" if most <= 2_500_000 else "no"
        cells = [strategy, shortened(most), shortened(sent), f"{sum(usage.messages):,}", fit]
        assert row == cells
    assert {row[-1] for row in found["compared"]} >= {"yes", "no"}
    assert tab.locator("tr[aria-current] th").inner_text() == "data"


def test_it_says_what_fits_and_what_is_in_the_way(page: str, tab: Tab) -> None:
    tab.goto(page)
    large = {"net": "dense", "millions": 7000, "layers": 32, "devices": 8, "optimizer": "adam"}
    stages = {**large, "net": "lenet", "devices": 4, "strategy": "pipeline", "card": "other"}
    words = [
        each["words"]
        for each in each_of(
            tab,
            "memory",
            [
                {},
                {**large, "card": "80"},
                {**large, "card": "80", "strategy": "zero3"},
                {**stages, "gigabytes": "0.002"},
            ],
            READ,
        )
    ]
    assert words[0].startswith(
        "All 4 devices fit a card of 24\u00a0GB: device 0, the fullest, fills less than 1\u00a0% "
        "of it. "
        "The next bottleneck: activations, 1.30\u00a0MB of 2.85\u00a0MB there. "
        "The fullest device would keep less with "
    )
    assert words[1].startswith(
        "None of the 8 devices fits a card of 80\u00a0GB, and device 0 keeps 112\u00a0GB. "
        "The next bottleneck: optimizer, 56.0\u00a0GB of 112\u00a0GB there. "
        "The fullest device would keep less with pipeline (14.1\u00a0GB), tensor"
    )
    assert words[2].startswith(
        "All 8 devices fit a card of 80\u00a0GB: device 0, the fullest, fills"
    )
    assert words[3].startswith(
        "Devices 1 and 2 do not fit a card of 0.002\u00a0GB, and device 1 keeps 3.86\u00a0MB. "
        "The others fit. The next bottleneck: activations, "
    )


def test_bars_are_as_long_as_what_they_stand_for(page: str, tab: Tab) -> None:
    tab.goto(page)
    each_of(tab, "memory", [{"strategy": "pipeline", "microbatches": 4}], READ)
    widths: list[float] = tab.locator(".explorer-stage rect").evaluate_all(
        "all => all.map(each => Number(each.getAttribute('width')))"
    )
    peak = Scenario(strategy="pipeline", microbatches=4).usage().peak
    kept = [peak[kind][device] for device in range(4) for kind in KEPT]
    scale = max(widths) / max(kept)
    assert widths == pytest.approx([size * scale for size in kept])
    each_of(tab, "memory", [{"strategy": "data"}], READ)
    assert tab.locator(".explorer-stage text").all_text_contents()[0] == "devices 0–3"
    assert tab.locator(".explorer-stage rect").count() == 4


def test_the_line_of_a_card_stands_where_its_memory_ends(page: str, tab: Tab) -> None:
    tab.goto(page)
    settings = {"card": "other", "gigabytes": "0.002"}
    each_of(tab, "memory", [settings], READ)
    bar = [each.bounding_box() for each in tab.locator(".explorer-stage rect").all()]
    line = tab.locator(".explorer-card").bounding_box()
    assert line
    left, right = bar[0], bar[-1]
    assert left
    assert right
    peak = Scenario().usage().peak
    kept = sum(peak[kind][0] for kind in KEPT)
    whole = right["x"] + right["width"] - left["x"]
    assert line["x"] - left["x"] == pytest.approx(whole * 2e6 / kept, abs=2)


def test_only_fields_that_count_are_shown(page: str, tab: Tab) -> None:
    tab.goto(page)
    fields = ("depth", "width", "millions", "layers", "gigabytes")

    def shown(**values: str) -> set[str]:
        each_of(tab, "memory", [values], READ)
        return {name for name in fields if tab.locator(f"[name={name}]").is_visible()}

    assert shown() == {"depth"}
    assert shown(net="resnet18", strategy="tensor") == {"width"}
    assert shown(net="dense", strategy="pipeline", card="other") == {
        *("millions", "layers", "gigabytes")
    }


def test_the_address_has_what_was_chosen(page: str, tab: Tab) -> None:
    tab.goto(page)
    tab.locator("[name=strategy]").select_option("zero2")
    tab.locator("[name=devices]").fill("7")
    in_the_address(tab, "memory.strategy=zero2", "memory.devices=7")
    before = values_of(tab, "memory")
    shown = each_of(tab, "memory", [{}], READ)
    tab.reload()
    assert values_of(tab, "memory") == before
    assert each_of(tab, "memory", [{}], READ) == shown
    tab.locator("[name=strategy]").select_option("data")
    tab.wait_for_function("!location.search.includes('strategy')")


def test_links_of_the_page_lead_to_what_they_say(page: str, tab: Tab) -> None:
    links = linked_to("memory")
    assert len(links) == 8
    for link in links:
        tab.goto(page + link)
        asked = parse_qsl(urlsplit(link).query, strict_parsing=True)
        values = values_of(tab, "memory")
        assert {key: values[key.removeprefix("memory.")] for key, _ in asked} == dict(asked)
        assert not said(tab).startswith("There is no such plan")


def test_nonsense_in_the_address_counts_as_nothing(page: str, tab: Tab) -> None:
    tab.goto(page)
    first = each_of(tab, "memory", [{}], READ)
    tab.goto(f"{page}?memory.strategy=magic&memory.devices=many&memory.net=&other=1&memory.depth=")
    assert each_of(tab, "memory", [{}], READ) == first
    tab.goto(f"{page}?memory.devices=9999&memory.examples=-5&memory.depth=1.6")
    ((found),) = each_of(tab, "memory", [{}], READ)
    scenario = Scenario(devices=64, examples=1, depth=2)
    numbers = [[int(cell.replace(",", "")) for cell in row] for row in found["numbers"]]
    assert numbers == rows_of(scenario.usage())


def test_every_control_works_by_keys(page: str, tab: Tab) -> None:
    tab.goto(f"{page}?memory.strategy=pipeline&memory.card=other")
    assert by_keys(tab, "memory") == []
    tab.goto(f"{page}?memory.net=dense")
    assert by_keys(tab, "memory") == []
    tab.goto(page)
    tab.locator("summary").focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".explorer-numbers table").is_visible()


@ON_BOTH
def test_nothing_is_wider_than_the_window(page: str, tab: Tab) -> None:
    tab.goto(page)
    tab.locator("summary").click()
    wide = {"net": "dense", "millions": 1_000_000, "layers": 100, "optimizer": "adam"}
    for strategy in STRATEGIES:
        for devices in (1, 7, 64):
            values = {**wide, "strategy": strategy, "devices": devices, "microbatches": 8}
            each_of(tab, "memory", [values], READ)
            assert fits(tab)
            assert spilled(tab) == []


def test_colours_follow_the_reader_and_the_page(page: str, tab: Tab) -> None:
    tab.goto(page)
    light, dark, chosen_dark, chosen_light = light_and_dark(tab, "memory")
    assert light == chosen_light != dark == chosen_dark


def test_a_change_is_drawn_at_once(page: str, tab: Tab) -> None:
    tab.goto(page)
    large = {"net": "dense", "millions": 7000, "layers": 100, "devices": 16, "microbatches": 16}
    every = [{**large, "strategy": strategy, "examples": 4096} for strategy in STRATEGIES]
    each_of(tab, "memory", every, READ)
    begun = tab.evaluate("performance.now()")
    each_of(tab, "memory", every, READ)
    assert (tab.evaluate("performance.now()") - begun) / len(every) < 500  # 50 on a quiet machine


def test_without_scripts_a_picture_and_a_table_stand_there(page: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(page)
    assert opened.locator(".explorer-still svg[role=img]").is_visible()
    rows = opened.locator(".explorer-still table tr").all_inner_texts()
    assert [row.split()[0] for row in rows[1:]] == list(STRATEGIES)
    usage = Scenario(strategy="tensor").usage()
    sent = sum(map(sum, usage.sent.values()))
    assert f"{sent:,} bytes" in rows[3]
    assert opened.locator("select").first.is_hidden()
    context.close()


def sent(scenario: Scenario) -> int:
    return sum(map(sum, scenario.usage().sent.values()))


def test_what_the_page_says_of_traffic_is_so() -> None:
    text = (ASSETS.parent / "explorer.md").read_text(encoding="utf-8")
    for strategy, examples in (("tensor", 8), ("tensor", 256), ("data", 8)):
        told = shortened(sent(Scenario(strategy=strategy, examples=examples)))
        assert told.replace("\u00a0", " ") in text
    dense = [
        Scenario("dense", strategy=x, examples=n) for n in (2048, 4096) for x in ("tensor", "data")
    ]
    few, data, many, same = map(sent, dense)
    assert few < data == same < many
    assert sent(Scenario(strategy="zero3")) == sent(Scenario(strategy="zero2")) * 3 / 2
