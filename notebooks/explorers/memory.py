"""What each device keeps and sends in a step, for a card of some size, and by every strategy."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing import plans
from common.parallel.ledger import KEPT, MOVED, Usage
from common.parallel.nets import ATTENTION, RECOMPUTE
from common.scaling.cluster import with_prefix
from common.scaling.scenario import OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS, Seconds
from common.terminal.values import WIDTH
from notebooks.explorers.forms import Choice, Form, answer, number, select, size, table, values

NETS: Final = {"lenet": "LeNet", "resnet18": "ResNet-18", "transformer": "transformer"}

SIZES: Final = {str(gigabytes): f"{gigabytes} GB" for gigabytes in (8, 16, 24, 40, 80, 141)}

FORM: Final[Form] = [
    [
        select("net", NETS, "lenet"),
        number("depth", 0, (0, 12), "more layers"),
        number("width", 64, (1, WIDTH)),
        number("millions", 100, (1, 10**6), "millions of weights"),
        number("layers", 24, (1, 100)),
        number("sequence", 2048, (1, 10**6)),
        select("attention", ATTENTION, "flash"),
        select("recompute", RECOMPUTE, "none"),
    ],
    [
        select("strategy", STRATEGIES.keys(), "data"),
        number("devices", 4, (1, 64)),
        number("replicas", 1, (1, 64)),
        number("microbatches", 0, (0, 64)),
        select("schedule", SCHEDULES.keys(), "1f1b"),
    ],
    [
        number("examples", 256, (1, 2**24)),
        select("precision", PRECISIONS.keys(), "float32"),
        select("optimizer", OPTIMIZERS.keys(), "momentum"),
        select("card", {**SIZES, "other": "other"}, "24"),
        number("gigabytes", 24.0, (0.001, 10_000), "GB", step=0),
    ],
    [
        select("gpu", CARDS.keys(), "a100", "speed of"),
        number("percent", 0, (0, 100), "% of its peak (0: usual)"),
        select("link", LINKS.keys(), "nvlink"),
        select("between", LINKS.keys(), "infiniband", "between nodes"),
        number("node", 8, (1, 64), "devices in a node"),
    ],
]

FIELDS: Final = {
    **{"depth": "lenet", "width": "resnet18"},
    **dict.fromkeys(("millions", "layers", "sequence", "attention", "recompute"), "transformer"),
}
"""Controls that only some net has."""


def scenario(chosen: Mapping[str, Any], strategy: str) -> Scenario:
    share = {"peak_share": chosen["percent"] / 100} if chosen["percent"] else {}
    others = {"strategy", "millions", "gpu", "percent", "card", "gigabytes"}
    return Scenario(
        strategy=strategy,
        parameters=10**6 * chosen["millions"],
        card=chosen["gpu"],
        **share,
        **{name: value for name, value in chosen.items() if name not in others},
    )


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    hidden = [name for name, net in FIELDS.items() if net != chosen["net"]]
    hidden += ["gigabytes"] * (chosen["card"] != "other")
    gigabytes = chosen["gigabytes"] if chosen["card"] == "other" else float(chosen["card"])
    refused, known = {}, {}
    for strategy in STRATEGIES:
        wanted = scenario(chosen, strategy)
        if why := wanted.refusal():
            refused[strategy] = why
        else:
            known[strategy] = wanted.plan(), wanted.usage(), wanted.seconds(), wanted.kept()
    strategy = chosen["strategy"]
    words, drawn, exact = f"There is no such plan: {refused.get(strategy)}.", "", ""
    if strategy in known:
        plan, usage, seconds, kept = known[strategy]
        words = f"{fits(usage, kept, gigabytes)} {timed(seconds, chosen['examples'])}"
        drawn = plans.step(plan, usage)
        exact = f"<summary>Every number, to the byte</summary>{everything(usage)}"
    headings = ["strategy", "most kept", "sent by all", "messages", "a step", "fits"]
    rows = [
        [
            name,
            size(max(kept)),
            size(sum(usage.all_sent())),
            f"{sum(usage.messages):,}",
            time(seconds.step),
            "no" if max(kept) > 1e9 * gigabytes else "yes",
        ]
        for name, (_, usage, seconds, kept) in known.items()
    ]
    others = "".join(f"<p>No {name}: {why}.</p>" for name, why in refused.items())
    compared = table(headings, rows, strategy) + others
    blocks = [("words", words), ("stage", drawn), ("scrolled", compared), ("exact", exact)]
    return answer(blocks, chosen, hidden)


def time(seconds: float) -> str:
    return with_prefix(seconds, "s").replace(" ", "\u00a0")


def fits(usage: Usage, kept: Sequence[int], gigabytes: float) -> str:
    """Whether devices fit a card, and what takes most on the fullest one."""
    device, card = kept.index(max(kept)), f"a card of {gigabytes:g}\u00a0GB"
    large = sum(each > 1e9 * gigabytes for each in kept)
    kind = max(KEPT, key=lambda kind: usage.peak[kind][device])
    most, name = usage.peak[kind][device], kind.replace("momentum", "optimizer")
    share = f"{ceil(kept[device] / gigabytes / 1e7)}\u00a0%"
    first = f"Every device fits {card}: device {device}, the fullest, fills {share} of it."
    if large:
        first = f"{large} of {len(kept)} devices do not fit {card}: device {device} keeps "
        first += f"{size(kept[device])}."
    return f"{first} What takes most: {name}, {size(most)} of {size(kept[device])} there."


def timed(seconds: Seconds, examples: int) -> str:
    parts = ", ".join(f"{name} {time(part)}" for name, part in seconds.parts.items() if part)
    return (
        f"A step takes {time(seconds.step)}: {parts}; messages of {time(seconds.hidden)} overlap. "
        f"{examples / seconds.step:,.0f} examples a second use {100 * seconds.used:.1f}\u00a0% of "
        "the peak."
    )


def everything(usage: Usage) -> str:
    columns = {
        **{f"kept {kind}": usage.peak[kind] for kind in KEPT},
        **{f"sent {kind}": usage.sent[kind] for kind in MOVED},
        **{f"received {kind}": usage.received[kind] for kind in MOVED},
        **{"messages": usage.messages, "in flight": usage.live},
    }
    rows = (
        [str(device), *(f"{each[device]:,}" for each in columns.values())]
        for device in range(len(usage.live))
    )
    return f'<div class="explorer-scrolled" tabindex="0">{table(["device", *columns], rows)}</div>'
