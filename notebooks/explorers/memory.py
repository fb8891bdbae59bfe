"""What each device keeps and sends in a step, for a card of some size, and by every strategy."""

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby
from math import ceil
from typing import Any, Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing import svg
from common.drawing.plans import KINDS
from common.parallel.ledger import KEPT, MOVED, Usage
from common.parallel.nets import RECOMPUTE
from common.scaling.cluster import with_prefix
from common.scaling.scenario import OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS, Seconds
from common.terminal.values import WIDTH
from notebooks.explorers.forms import (
    Choice,
    Form,
    answer,
    drawing,
    entry,
    number,
    room,
    select,
    size,
    table,
    values,
)

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
        select("recompute", RECOMPUTE, "none"),
    ],
    [
        select("strategy", STRATEGIES.keys(), "data"),
        number("devices", 4, (1, 64)),
        number("replicas", 1, (1, 64)),
        number("microbatches", 1, (1, 64)),
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
        number("percent", 50, (1, 100), "% of its peak"),
        select("link", LINKS.keys(), "nvlink"),
        select("between", LINKS.keys(), "infiniband", "between nodes"),
        number("node", 8, (1, 64), "devices in a node"),
    ],
]

FIELDS: Final = {
    **{"depth": "lenet", "width": "resnet18"},
    **dict.fromkeys(("millions", "layers", "sequence", "recompute"), "transformer"),
}
"""Controls that only some net has."""

NAMES: Final = {kind: kind.replace("momentum", "optimizer") for kind in KEPT}

HEAD, LANE, DIGIT, TOTAL = 20, 20, 7, 64
"""Of the picture: above the bars, from one to the next, a letter, and a bar's sum."""


def scenario(chosen: Mapping[str, Any], strategy: str) -> Scenario:
    others = {"strategy", "millions", "gpu", "percent", "card", "gigabytes"}
    return Scenario(
        strategy=strategy,
        parameters=10**6 * chosen["millions"],
        card=chosen["gpu"],
        peak_share=chosen["percent"] / 100,
        **{name: value for name, value in chosen.items() if name not in others},
    )


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    hidden = [name for name, net in FIELDS.items() if net != chosen["net"]]
    hidden += ["gigabytes"] * (chosen["card"] != "other")
    gigabytes = chosen["gigabytes"] if chosen["card"] == "other" else float(chosen["card"])
    card, named = 1e9 * gigabytes, f"{gigabytes:g}\u00a0GB"
    every = {strategy: scenario(chosen, strategy) for strategy in STRATEGIES}
    refused = {name: each.refusal() for name, each in every.items()}
    known = {name: each for name, each in every.items() if not refused[name]}
    usages = {name: each.usage() for name, each in known.items()}
    seconds = {name: each.seconds() for name, each in known.items()}
    strategy = chosen["strategy"]
    words = f"There is no such plan: {refused[strategy]}."
    shown = [("stage", ""), ("legend", ""), ("scrolled", "")]
    exact = ""
    if usage := usages.get(strategy):
        device = fullest(usage)
        words = f"{fits(usage, card, named)} {timed(seconds[strategy], chosen['examples'])}"
        entries = (
            entry(*KINDS[kind], f"{NAMES[kind]} {size(usage.peak[kind][device])}") for kind in KEPT
        )
        shown = [
            ("stage", bars(usage, card, named, room(choice))),
            ("legend", f"On device {device}: " + " ".join(entries)),
            ("scrolled", traffic(usage)),
        ]
        exact = f"<summary>Every number, to the byte</summary>{everything(usage)}"
    rows = [
        [
            name,
            size(max(usages[name].kept())),
            size(sum(usages[name].all_sent())),
            f"{sum(usages[name].messages):,}",
            time(seconds[name].step),
            "no" if max(usages[name].kept()) > card else "yes",
        ]
        if name in known
        else [name, f"no: {refused[name]}"]
        for name in STRATEGIES
    ]
    headings = ["strategy", "most kept", "sent by all", "messages", "a step", "fits"]
    compared = table(headings, rows, "Every strategy on these devices", strategy)
    blocks = [("words", escape(words)), *shown, ("scrolled", compared), ("exact", exact)]
    return answer(blocks, chosen, hidden)


def fullest(usage: Usage) -> int:
    return usage.kept().index(max(usage.kept()))


def time(seconds: float) -> str:
    return with_prefix(seconds, "s").replace(" ", "\u00a0")


def fits(usage: Usage, card: float, named: str) -> str:
    """Whether devices fit a card, and what takes most on the fullest one."""
    kept, device = usage.kept(), fullest(usage)
    most, large = kept[device], sum(each > card for each in kept)
    kind = max(KEPT, key=lambda kind: usage.peak[kind][device])
    first = (
        f"{large} of {len(kept)} devices do not fit a card of {named}: device {device} keeps "
        f"{size(most)}."
        if large
        else f"Every device fits a card of {named}: device {device}, the fullest, fills "
        f"{ceil(100 * most / card)}\u00a0% of it."
    )
    return (
        f"{first} The next bottleneck: {NAMES[kind]}, {size(usage.peak[kind][device])} of "
        f"{size(most)} there."
    )


def timed(seconds: Seconds, examples: int) -> str:
    parts = ", ".join(f"{name} {time(part)}" for name, part in seconds.parts.items() if part)
    return (
        f"A step takes {time(seconds.step)}: {parts}; messages of {time(seconds.hidden)} overlap. "
        f"{examples / seconds.step:,.0f} examples a second use {100 * seconds.used:.1f}\u00a0% of "
        "the peak."
    )


def lanes(usage: Usage) -> Iterator[tuple[str, int]]:
    """Devices that keep the same, in words, and the first of them."""

    def key(device: int) -> list[str]:
        return [size(usage.peak[kind][device]) for kind in KEPT]

    for _, group in groupby(sorted(range(len(usage.live)), key=key), key):
        devices = list(group)
        first, last = devices[0], devices[-1]
        sign = "–" if last - first < len(devices) else ", … "
        yield f"devices {first}{sign}{last}" if devices[1:] else f"device {first}", first


def bars(usage: Usage, card: float, named: str, width: float) -> str:
    groups = sorted(lanes(usage), key=lambda lane: lane[1])
    kept, left = usage.kept(), 6 + DIGIT * max(len(name) for name, _ in groups)
    scale = max(*kept, card if card <= 3 * max(kept) else 0)
    unit = max(60.0, width - left - TOTAL) / scale
    end, line = HEAD + len(groups) * LANE, left + card * unit
    drawn = []
    for row, (name, device) in enumerate(groups):
        x, y = float(left), HEAD + row * LANE
        drawn.append(svg.text(0, y + 13, name, "muted", anchor="start"))
        for kind, (part, share) in KINDS.items():
            wide = usage.peak[kind][device] * unit
            drawn.append(svg.rect((x, y, wide, LANE - 3), part, radius=0, share=share))
            x += wide
        colour = "sent" if kept[device] > card else "ink"
        drawn.append(svg.text(x + 6, y + 13, size(kept[device]), colour, anchor="start"))
    if card <= scale:
        drawn.append(svg.path(f"M{svg.number(line)} 4V{end}", "copies"))
        away, anchor = (5, "start") if line < (left + width) / 2 else (-5, "end")
        drawn.append(svg.text(line + away, 13, f"card: {named}", "sent", anchor=anchor))
    else:
        drawn.append(svg.text(width - 2, 13, f"card: {named} →", "sent", anchor="end"))
    return drawing(width, end + 2, "What each device keeps, by kind", drawn)


def traffic(usage: Usage) -> str:
    sent, messages = usage.all_sent(), usage.messages
    busiest = sent.index(max(sent))
    kinds = {**{kind: usage.sent[kind] for kind in MOVED}, "together": sent}
    rows = [[kind, size(sum(each)), size(each[busiest])] for kind, each in kinds.items()]
    rows.append(["messages", f"{sum(messages):,}", f"{messages[busiest]:,}"])
    return table(["", "all devices", f"the busiest: {busiest}"], rows, "Sent in a step")


def everything(usage: Usage) -> str:
    columns = {
        **{NAMES[kind]: usage.peak[kind] for kind in KEPT},
        **{f"sent {kind}": usage.sent[kind] for kind in MOVED},
        **{f"received {kind}": usage.received[kind] for kind in MOVED},
        **{"messages": usage.messages, "in flight": usage.live},
    }
    rows = (
        [str(device), *(f"{each[device]:,}" for each in columns.values())]
        for device in range(len(usage.live))
    )
    return f'<div class="explorer-scrolled" tabindex="0">{table(["device", *columns], rows)}</div>'
