"""What each device keeps and sends in a step, on cards of some memory, and by every strategy."""

from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing import plans
from common.parallel.ledger import KEPT
from common.parallel.nets import ATTENTION, RECOMPUTE
from common.scaling.scenario import OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS
from common.terminal.values import WIDTH
from notebooks.explorers.forms import Choice, Control, Form, answer, quantity, select, table, values

TITLE: Final = "What each device keeps and sends"

SIZES: Final = {
    "lenet": ["depth"],
    "resnet18": ["width"],
    "transformer": ["millions", "layers", "sequence", "attention", "recompute"],
}
"""Controls that only some net has."""

FORM: Final[Form] = [
    [
        select("net", SIZES, "lenet"),
        Control("depth", 0, range(13), "more layers"),
        Control("width", 64, range(1, WIDTH + 1)),
        Control("millions", 100, range(1, 10**6 + 1), "millions of weights"),
        Control("layers", 24, range(1, 101)),
        Control("sequence", 2048, range(1, 10**6 + 1)),
        select("attention", ATTENTION, "flash"),
        select("recompute", RECOMPUTE, "none"),
    ],
    [
        select("strategy", STRATEGIES, "data"),
        Control("devices", 4, range(1, 65)),
        Control("replicas", 1, range(1, 65)),
        Control("microbatches", 0, range(65)),
        select("schedule", SCHEDULES, "1f1b"),
        Control("examples", 256, range(1, 2**24 + 1)),
        select("precision", PRECISIONS, "float32"),
        select("optimizer", OPTIMIZERS, "momentum"),
    ],
    [
        select("card", CARDS, "a100"),
        select("link", LINKS, "nvlink"),
        select("between", LINKS, "infiniband", "between nodes"),
        Control("node", 8, range(1, 65), "devices in a node"),
    ],
]

HEADINGS: Final = ("strategy", "most kept", "sent by all", "messages", "a step", "fits")


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    memory, strategy = CARDS[chosen["card"]]["memory"], chosen["strategy"]
    hidden = [name for net, names in SIZES.items() if net != chosen["net"] for name in names]
    rows, refused = [], {}
    for name in STRATEGIES:
        plan = scenario(chosen, name)
        if why := plan.refusal():
            refused[name] = why
            continue
        usage, kept = plan.usage(), max(plan.kept())
        sent, step = sum(usage.all_sent()), plan.seconds().step
        numbers = quantity(kept, "B"), quantity(sent, "B"), f"{sum(usage.messages):,}"
        rows.append([name, *numbers, quantity(step, "s"), "no" if kept > memory else "yes"])
    words, drawn = f"There is no such plan: {refused.get(strategy)}.", ""
    if strategy not in refused:
        plan = scenario(chosen, strategy)
        words, drawn = f"{fits(plan, memory)} {timed(plan)}", plans.step(plan.plan(), plan.usage())
    others = "".join(f"<p>No {name}: {why}.</p>" for name, why in refused.items())
    compared = table(HEADINGS, rows, strategy) + others
    return answer(chosen, hidden, words=words, stage=drawn, scrolled=compared)


def scenario(chosen: Mapping[str, Any], strategy: str) -> Scenario:
    fields = {name: value for name, value in chosen.items() if name != "millions"}
    return Scenario(**{**fields, "strategy": strategy, "parameters": 10**6 * chosen["millions"]})


def fits(plan: Scenario, memory: float) -> str:
    """Whether devices fit a card, and what takes most on the fullest one."""
    kept, peak = plan.kept(), plan.usage().peak
    device, card = kept.index(max(kept)), f"a card of {quantity(memory, 'B')}"
    kind = max(KEPT, key=lambda kind: peak[kind][device])
    most, name = quantity(peak[kind][device], "B"), kind.replace("momentum", "optimizer")
    share = f"{ceil(100 * kept[device] / memory)}\u00a0%"
    first = f"Every device fits {card}: device {device}, the fullest, fills {share} of it."
    if large := sum(each > memory for each in kept):
        first = f"{large} of {len(kept)} devices do not fit {card}."
    whole = quantity(kept[device], "B")
    return f"{first} What takes most: {name}, {most} of {whole} on device {device}."


def timed(plan: Scenario) -> str:
    time = plan.seconds()
    parts = ", ".join(f"{name} {quantity(part, 's')}" for name, part in time.parts.items() if part)
    return (
        f"A step takes {quantity(time.step, 's')}: {parts}; messages of "
        f"{quantity(time.hidden, 's')} overlap. {plan.examples / time.step:,.0f} examples a second "
        f"use {100 * time.used:.1f}\u00a0% of the peak."
    )
