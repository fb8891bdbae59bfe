"""The explorers compute in a browser what Python plans."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import walked
from browser_tabs import NEEDED
from explorer_page import ASSETS, each_of, page_of
from playwright.sync_api import Page as Tab

from common.chapters.strategies import SCHEDULES
from common.parallel.ledger import KEPT, MOVED
from common.parallel.nets import RECOMPUTE
from common.parallel.pipelines import bubble, most_live, order, simulate
from common.parallel.schedules import SCHEDULES as ALLREDUCES
from common.scaling.scenario import NETS, OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS
from notebooks.drawing.explorers import STRATEGIES
from notebooks.drawing.frames import words

pytestmark = NEEDED

CHOICES: dict[str, dict[str, Sequence[Any]]] = {
    "memory": {
        "net": list(NETS),
        "depth": range(13),
        "width": [1, 3, 8, 64, 640, 1024],
        "millions": [1, 7, 999, 7_000, 1_000_000],
        "layers": [1, 2, 5, 32, 99, 100],
        "sequence": [1, 101, 2048, 65536],
        "recompute": RECOMPUTE,
        "strategy": list(STRATEGIES),
        "devices": [1, 2, 3, 4, 5, 6, 7, 12, 16],
        "replicas": [1, 1, 1, 2, 3],
        "microbatches": [1, 2, 3, 4, 7, 16],
        "schedule": list(SCHEDULES),
        "examples": [1, 2, 5, 101, 256, 65536],
        "precision": list(PRECISIONS),
        "optimizer": list(OPTIMIZERS),
        "gpu": list(CARDS),
        "percent": [1, 33, 50, 100],
        "link": list(LINKS),
        "between": list(LINKS),
        "node": [1, 2, 3, 8],
    },
    "pipeline": {
        "stages": [1, 2, 3, 4, 7, 8, 16],
        "microbatches": [1, 5, 8, 16, 21, 24, 48, 64],
        "schedule": list(SCHEDULES),
        "forward": [0.5, 1, 2.5, 8],
        "backward": [0.5, 1, 2, 7.5],
    },
    "shards": {
        "strategy": list(STRATEGIES),
        "depth": range(5),
        "devices": range(1, 9),
        "replicas": [1, 1, 2, 3],
        "microbatches": [1, 2, 3, 4],
        "schedule": list(SCHEDULES),
    },
}
"""By figure, what its controls are set to, at random."""

TRANSLATED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "millions": ("parameters", lambda value: 10**6 * value),
    "gpu": ("card", str),
    "percent": ("peak_share", lambda value: value / 100),
}
"""Controls that the command has otherwise."""


def drawn(figure: str, count: int = 300) -> list[dict[str, Any]]:
    """Random settings of a figure."""
    chance = random.Random(0)
    choices = CHOICES[figure].items()
    return [{name: chance.choice(values) for name, values in choices} for _ in range(count)]


def planned(tab: Tab, figure: str, read: str) -> Iterator[tuple[Scenario, Any]]:
    """Random plans, and what the page says of them."""
    settings = drawn(figure)
    refused = 0
    for values, shown in zip(settings, each_of(tab, figure, settings, read), strict=True):
        chosen = {key: value for key, value in values.items() if key not in TRANSLATED}
        more = {name: f(values[key]) for key, (name, f) in TRANSLATED.items() if key in values}
        scenario = Scenario(**chosen, **more)
        why = scenario.refusal()
        refused += bool(why)
        if why:
            assert shown == f"There is no such plan: {why}."
        else:
            yield scenario, shown
    assert 0 < refused < len(settings) / 2


CELLS = "name => [...root.querySelectorAll(`.explorer-${name} tbody tr`)].map(row => "
CELLS += "[...row.children].map(each => each.textContent))"

# --- memory and traffic

MEMORY = f"""(root, values) => {{
    const cells = {CELLS}, settings = {{...values, parameters: 1e6 * values.millions}};
    if (plans.refusal(settings)) return root.querySelector('.explorer-words').textContent;
    const plan = plans.planOf(settings), {{ text }} = root.querySelector('[type*=json]');
    return {{numbers: cells('numbers'), compared: cells('comparison'),
        time: plans.predict(settings, plans.clusterOf(JSON.parse(text), values)),
        plan: [plan.weights, plan.updated, plan.stages]}};
}}"""


def check_memory(tab: Tab) -> None:
    """Every number of random plans, to the byte, and the layout of every weight."""
    for scenario, shown in planned(tab, "memory", MEMORY):
        plan, usage = scenario.plan(), scenario.usage()
        rows = zip(
            range(scenario.devices),
            *(usage.peak[kind] for kind in KEPT),
            *(usage.sent[kind] for kind in MOVED),
            *(usage.received[kind] for kind in MOVED),
            *(usage.messages, usage.live),
            strict=True,
        )
        numbers = [[int(cell.replace(",", "")) for cell in row] for row in shown["numbers"]]
        assert numbers == [list(row) for row in rows], scenario
        layouts = [
            {name: [part and asdict(part) for part in layout] for name, layout in sizes.items()}
            for sizes in (plan.weights, plan.updated)
        ]
        stages = plan.stages if plan.strategy == "pipeline" else []
        assert shown["plan"] == [*layouts, stages]
        seconds = asdict(scenario.seconds())
        assert shown["time"].pop("parts") == pytest.approx(seconds.pop("parts"), rel=1e-9)
        assert shown["time"] == pytest.approx(seconds, rel=1e-9)
        compared = {row[0]: row[3] for row in shown["compared"] if len(row) == 6}
        assert compared[scenario.strategy] == f"{sum(usage.messages):,}"


# --- pipelines

PIPELINE = f"""(root, values) => {{
    const cells = {CELLS}, {{ stages, microbatches, schedule, forward, backward }} = values;
    const events = pipelines.simulate(pipelines.orders[schedule](stages, microbatches),
        one => (one.forward ? forward : backward));
    return {{boxes: root.querySelectorAll('.pic-pass').length, sums: cells('sums'),
        devices: cells('devices'), bubble: pipelines.bubble(events, stages), events: events.map(
        e => [e.device, e.stage, e.microbatch, e.forward, e.begin, e.end])}};
}}"""


def near(shown: str, share: float) -> bool:
    """Whether a share is shown as percent, with one digit after the point."""
    return abs(float(shown.removesuffix("\u00a0%")) - 100 * share) <= 0.05 + 1e-9


def check_pipeline(tab: Tab) -> None:
    """When each pass begins and ends, and the sums of it, for random pipelines."""
    settings = drawn("pipeline")
    for values, shown in zip(settings, each_of(tab, "pipeline", settings, PIPELINE), strict=True):
        stages, microbatches, schedule, forward, backward = values.values()
        stage_passes = order(schedule, stages, microbatches)
        times = {True: forward, False: backward}
        events = simulate(stage_passes, lambda step, times=times: times[step.forward])  # type: ignore[misc]
        assert shown["events"] == [
            [event.done.stage, *event.done, event.begin, event.end] for event in events
        ]
        assert (shown["boxes"], shown["bubble"]) == (len(events), bubble(events, stages))
        (_, whole), (_, waits), (_, theory) = shown["sums"]
        assert float(whole.removesuffix(" units")) == max(event.end for event in events)
        assert near(waits, bubble(events, stages))
        assert theory == waits
        for passes, (_, now, most, of_all) in zip(stage_passes, shown["devices"], strict=True):
            assert (now, most) == ("0", str(most_live(passes)))
            assert near(of_all, most_live(passes) / microbatches)


# --- shards

SHARDS = """(root, values) => {
    const settings = {net: 'lenet', ...values};
    if (plans.refusal(settings)) return root.querySelector('.explorer-words').textContent;
    const walk = moments(plans.planOf(settings));
    const most = kind => walk[0].held.map((_, device) =>
        Math.max(...walk.map(each => each.held[device][kind])));
    const total = kind => walk.reduce((sum, each) => sum + (each.sent[kind] ?? 0), 0);
    const live = Object.values(walk[0].inputs)[0].map((_, device) =>
        Math.max(...walk.flatMap(each => Object.values(each.inputs).map(of => of[device]))));
    return {
        held: Object.fromEntries(['weights', 'gradients', 'momentum'].map(x => [x, most(x)])),
        sent: Object.fromEntries(plans.MOVED.map(kind => [kind, total(kind)])),
        live, ends: [walk[0].state, walk.at(-1).state], waiting: walk.at(-1).inputs,
    };
}"""


def check_shards(tab: Tab) -> None:
    """What a step holds at most and sends is what costs say."""
    for scenario, seen in planned(tab, "shards", SHARDS):
        plan, usage = scenario.plan(), scenario.usage()
        for kind in ("weights", "gradients", "momentum"):
            peak = [size // 4 for size in usage.peak[kind]]
            assert seen["held"][kind] * plan.replicas == peak, (scenario, kind)
        assert seen["sent"] == {kind: sum(usage.sent[kind]) // 4 for kind in MOVED}, scenario
        assert seen["live"] * plan.replicas == usage.live, scenario
        for state, (kind, layouts) in product(
            seen["ends"], (("weights", plan.weights), ("momentum", plan.updated))
        ):
            assert state[kind] == {
                name: [[{"part": asdict(part), "role": "kept"}] if part else [] for part in layout]
                for name, layout in layouts.items()
            }
            assert all(device == [] for shards in state["gradients"].values() for device in shards)
        assert not any(map(any, seen["waiting"].values()))


# --- rounds of an allreduce

ROUNDS = """(root, values) => {
    const slider = root.querySelector('[name=round]'), found = [];
    for (let round = 0; round <= Number(slider.max); round += 1) {
        slider.value = round;
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        found.push([root.querySelector('.explorer-words').textContent,
            [...root.querySelectorAll('.explorer-stage .pic-box')].map(each => each.textContent),
            root.querySelectorAll('.explorer-stage .pic-arrow').length]);
    }
    return found;
}"""


def check_rounds(tab: Tab) -> None:
    """Words, sums and messages of every round are those of an independent walk."""
    for algorithm, k in product(ALLREDUCES, (2, 7, 16)):
        schedule = ALLREDUCES[algorithm](k)
        values = {"algorithm": algorithm, "devices": k}
        (frames,) = each_of(tab, "rounds", [values], ROUNDS)
        rounds = zip(frames, walked.sums(schedule), ((), *schedule.rounds), strict=True)
        for number, ((told, cells, arrows), held, messages) in enumerate(rounds):
            assert told == words(schedule, number)
            assert arrows == len(messages)
            for cell, mask in zip(cells, held.ravel().tolist(), strict=True):
                spelled = "+".join(str(d) for d in range(k) if mask & 2**d)
                assert cell in {str(mask.bit_count()), spelled, "sum" if mask == 2**k - 1 else ""}


CHECKS = {
    "memory": (check_memory, "plans.js", "times * (size - own)", "times * size"),
    "pipeline": (
        check_pipeline,
        "pipelines.js",
        "ahead = devices - stage,",
        "ahead = devices,",
    ),
    "shards": (check_shards, "explore-shards.js", "wait(layer, every, -1);", ""),
    "rounds": (
        check_rounds,
        "explore-rounds.js",
        "[start + i] = sum",
        "[start] = sum",
    ),
}
"""What is checked, and a bug in a script."""


@pytest.mark.parametrize("figure", CHECKS)
def test_every_number_is_that_of_python_and_a_bug_in_a_script_is_found(
    tab: Tab, tmp_path: Path, figure: str
) -> None:
    check, name, right, wrong = CHECKS[figure]
    tab.goto(page_of(figure, tmp_path))
    check(tab)
    script = tmp_path / "assets" / name
    text = script.read_text(encoding="utf-8")
    assert text.count(right) == 1
    script.write_text(text.replace(right, wrong), encoding="utf-8")
    tab.reload()
    with pytest.raises(AssertionError):
        check(tab)


def sent(**settings: Any) -> int:
    usage = Scenario(**settings).usage()
    return sum(map(sum, usage.sent.values()))


def test_what_the_page_says_of_traffic_is_so() -> None:
    text = (ASSETS.parent / "explorer.md").read_text(encoding="utf-8")
    assert f"{sent(strategy='tensor', examples=8) / 1e3:.0f} KB" in text
    assert f"{sent(strategy='tensor', examples=256) / 1e6:.1f} MB" in text
    assert f"{sent(strategy='data', examples=8) / 1e6:.2f} MB" in text
    few, data, many, same = (
        sent(net="transformer", strategy=name, examples=n)
        for n, name in product((1024, 2048), ("tensor", "data"))
    )
    assert few < data == same < many
    assert sent(strategy="zero3") == sent(strategy="zero2") * 3 / 2


def test_fits_and_bottleneck_are_said(tab: Tab, tmp_path: Path) -> None:
    tab.goto(page_of("memory", tmp_path))
    large = {
        "net": "transformer",
        "millions": 7000,
        "layers": 32,
        "devices": 8,
        "optimizer": "adam",
    }
    read = "root => root.querySelector('.explorer-words').textContent"
    first, second = each_of(tab, "memory", [{}, {**large, "card": "80"}], read)
    assert first == (
        "Every device fits a card of 24\u00a0GB: device 0, the fullest, fills 1\u00a0% of it. "
        "The next bottleneck: activations, 1.30\u00a0MB of 2.85\u00a0MB there. "
        "A step takes 88.5\u00a0µs: data 77.6\u00a0µs, compute 10.9\u00a0µs; messages of "
        "7.25\u00a0µs overlap. 2,891,947 examples a second use 6.1\u00a0% of the peak."
    )
    assert second.startswith(
        "8 of 8 devices do not fit a card of 80\u00a0GB: device 0 keeps 113\u00a0GB. "
        "The next bottleneck: optimizer, 56.0\u00a0GB of 113\u00a0GB there."
    )
    widths = tab.locator(".explorer-stage rect").evaluate_all(
        "all => all.map(each => Number(each.getAttribute('width')))"
    )
    scenario = Scenario(
        net="transformer",
        parameters=7 * 10**9,
        layers=32,
        devices=8,
        optimizer="adam",
    )
    peak = scenario.usage().peak
    scale = sum(widths) / sum(peak[kind][0] for kind in KEPT)
    assert widths == pytest.approx([scale * peak[kind][0] for kind in KEPT])
