"""Steps of the chapter's large model: what overlaps, memory over time, plans side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from common.drawing import plans, svg
from common.drawing.plans import KINDS, LANE, LEFT, MARGIN, WIDTH, Block
from common.scaling.scenario import Scenario
from common.scaling.steps import CARDS

EXAMPLE: Final = Scenario(
    net="transformer",
    parameters=7_000_000_000,
    layers=32,
    precision="mixed",
    optimizer="adam",
    devices=8,
    examples=16_384,
    card="a100",
)
"""A transformer on A100s: the running example of the chapter on strategies."""

LINES: Final = {
    **{what: plans.PASSES[what] for what in ("forward", "backward")},
    **{"gather": ("data-cell", 0.6), "sum": ("sent-cell", 0.8)},
}

STACKED: Final = ("weights", "momentum", "gradients", "activations")

Span = tuple[str, int, float, float]
"""A pass or a message of a layer, and when it begins and ends."""


def spans(scenario: Scenario) -> list[Span]:
    """A step by data parallelism, ZeRO or tensor parallelism, in seconds.

    Messages wait for each other. ZeRO-3 gathers the weights of one layer ahead.
    """
    time, layers = scenario.seconds(), range(scenario.layers)
    stage = int(scenario.strategy[-1]) if "zero" in scenario.strategy else 0
    count = len(layers) * (1, 2, 2, 3)[stage] + (stage == 3)
    message, inside = (time.parts["data"] + time.hidden) / count, time.parts["tensor"] / count / 2
    done: list[Span] = []
    link = free = 0.0

    def send(what: str, layer: int, earliest: float, long: float = message) -> float:
        nonlocal link
        begin, link = max(link, earliest), max(link, earliest) + long
        done.append((what, layer, begin, link))
        return link

    passes = [("forward", i) for i in layers] + [("backward", i) for i in layers[::-1]]
    ready = send("gather", 0, 0.0) if stage == 3 else 0.0
    for (what, layer), following in zip(passes, [*passes[1:], None], strict=True):
        begin = max(free, ready)
        free = begin + time.parts["compute"] / len(layers) / 3 * (1 + (what == "backward"))
        done.append((what, layer, begin, free))
        if stage == 3 and following:
            ready = send("gather", following[1], begin)
        if inside:
            free = send("sum", layer, free, inside)
        elif what == "backward":
            send("sum", layer, free)
    for layer in layers if stage in (1, 2) else ():
        send("gather", layer, free)
    return done


def overlap(*names: str, link: str = "nvlink", layers: int = 4, tokens: int = 2048) -> str:
    """When a device computes and sends in a step of a few layers on so many tokens."""
    size, examples = EXAMPLE.parameters * layers // EXAMPLE.layers, EXAMPLE.devices * tokens
    small = replace(EXAMPLE, layers=layers, parameters=size, link=link, examples=examples)
    steps = {name: spans(replace(small, strategy=name)) for name in names}
    ends = {name: max(end for *_, end in step) for name, step in steps.items()}
    unit = (WIDTH - MARGIN - LEFT) / max(ends.values())
    blocks: list[Block] = []
    for name, step in steps.items():
        shapes = [plans.heading(f"{name}: {1000 * ends[name]:.0f} ms")]
        for row, label in enumerate(("computes", "sends")):
            y = 26 + row * LANE
            shapes.append(svg.text(MARGIN, y + 13, label, "muted", anchor="start"))
            shapes.append(svg.rect((LEFT, y, ends[name] * unit, LANE - 3), "ghost", radius=2))
        for what, layer, begin, end in step:
            y, wide = 26 + LANE * (what not in plans.PASSES), (end - begin) * unit
            label = str(layer + 1) if svg.fits("1", wide) else ""
            place = LEFT + begin * unit, y, wide, LANE - 3
            shapes.append(svg.box(place, label, *LINES[what]))
        blocks.append((26 + 2 * LANE + 6, shapes))
    described = f"When a device computes passes, and sends messages, of each of {layers} layers."
    title = f"A step on 8 devices, {link}: {', '.join(names)}"
    return plans.stacked(title, described, *blocks, plans.legend(LINES))


def moments(scenario: Scenario) -> Iterator[tuple[float, dict[str, float]]]:
    """The length of each pass of a layer, and the bytes that device 0 keeps, by kind.

    Last comes the update. With microbatches, only for a pipeline.
    """
    plan, sizes = scenario.plan(), scenario.sizes()
    peak = plan.memory(plan.rows_of(scenario.examples)[0].stop, 0, *sizes)
    piped, by_layer = plan.strategy == "pipeline", plan.strategy in ("zero2", "zero3")
    units = len(plan.units) // (plan.devices if piped else 1)
    passes = [step.forward for step in plan.order(plan.microbatches)[-1 + piped]]
    steps = [forward for forward in passes for _ in range(units)]
    live = list(accumulate((2 * forward - 1 for forward in steps), initial=0))
    slices, back = sizes[0] * plan.elements_updated(0), 0
    for i, forward in enumerate(steps):
        back += not forward
        share, held = min(1.0, back / units), max(live[i : i + 2]) / max(live)
        rest = (peak["gradients"] - slices) * (not forward if by_layer else share)
        changing = {"gradients": rest + share * slices, "activations": held * peak["activations"]}
        yield 2 - forward, {**peak, **changing}
    yield units / 4, {**peak, "activations": 0}


def memory_over_time(*names: str) -> str:
    """The memory of device 0 through a step; a pipeline cuts it into 8 microbatches."""
    card, high, wide = CARDS["a100"]["memory"], 60, WIDTH - 2 * MARGIN
    many = [8 if name == "pipeline" else 1 for name in names]
    chosen = zip(names, many, strict=True)
    curves = [list(moments(replace(EXAMPLE, strategy=x, microbatches=m))) for x, m in chosen]
    peaks = [max(sum(kept.values()) for _, kept in curve) for curve in curves]
    blocks: list[Block] = []
    for name, curve, peak in zip(names, curves, peaks, strict=True):
        lengths = [length * wide / sum(length for length, _ in curve) for length, _ in curve]
        edges, tops = list(accumulate(lengths, initial=MARGIN)), [26.0 + high] * len(curve)
        shapes = [plans.heading(f"{name}: at most {peak / 1e9:.0f} GB")]
        for kind in STACKED:
            heights = (kept[kind] * high / max(peaks) for _, kept in curve)
            below, tops = tops, [y - part for y, part in zip(tops, heights, strict=True)]
            sides = [*zip(edges[1:], tops, strict=True)]  # up to each height, then along it
            sides += zip(edges[-2::-1], below[::-1], strict=True)
            steps = "".join(f"V{svg.number(y)}H{svg.number(x)}" for x, y in sides)
            data = f"M{MARGIN} {svg.number(below[0])}{steps}Z"
            part, share = KINDS[kind]
            shapes.append(f'<path {svg.classes(part)} d="{data}" fill-opacity="{share}"/>')
        line = svg.number(26 + high * (1 - card / max(peaks)))
        blocks.append((high + 34, [*shapes, svg.path(f"M{MARGIN} {line}h{wide}", "adds")]))
    described = f"Bytes by kind, from the first pass to the update; a line at {card / 1e9:.0f} GB."
    meanings = {kind.replace("momentum", "optimizer"): KINDS[kind] for kind in STACKED}
    title = f"Memory through a step: {', '.join(names)}"
    return plans.stacked(title, described, *blocks, plans.legend(meanings))


def compare(base: Scenario, variants: Mapping[str, Mapping[str, Any]]) -> str:
    """A table of plans: memory of the fullest device, bytes sent by all, and the time of a step.

    `variants` has the fields of `base` that each plan changes, by the plan's name.
    """
    lines = [f"{'':<18}{'GB kept':>9}{'GB sent':>9}{'seconds':>9}  parts of the seconds"]
    for name, changes in variants.items():
        scenario = replace(base, **changes)
        usage, time = scenario.usage(), scenario.seconds()
        kept, sent = max(scenario.kept()) / 1e9, sum(usage.all_sent()) / 1e9
        parts = ", ".join(f"{part} {x:.2f}" for part, x in time.parts.items() if x >= 0.005)
        numbers = f"{kept:>9.1f}{sent:>9.1f}{time.step:>9.2f}"
        lines.append(f"{name:<18}{numbers}  {parts}; hidden {time.hidden:.2f}")
    return "\n".join(lines)
