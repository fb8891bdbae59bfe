"""Predicts each device's memory and traffic in a step of training, and draws the step.

python -m common.plan --devices 4 --microbatches 4      all strategies, side by side
python -m common.plan --strategy pipeline --devices 4 --microbatches 8 --out plan.svg
python -m common.plan --net resnet18 --strategy zero3 --optimizer adam --precision mixed
python -m common.plan --net transformer --parameters 7e9 --layers 32 --strategy zero3 --card h100
python -m common.plan --net transformer --tensor 4 --pipeline 4 --shards 4 --replicas 2
python -m common.plan --choose --net transformer --parameters 13e9 --devices 8 --card a100

Nothing is trained: the numbers are computed from the plan that a run would execute.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from common.base.errors import RequestError
from common.base.files import require_file, write_text
from common.chapters.strategies import STRATEGIES
from common.drawing.plans import step
from common.parallel.pipelines import bubble
from common.parallel.strategies import OF_ANY_NET, OF_EXPERTS
from common.scaling.choose import SEARCHED, choose
from common.scaling.cluster import with_prefix
from common.scaling.scenario import MESH, NETS, Scenario
from common.scaling.steps import CARDS, stages
from common.terminal.command import DEVICES as SINGLE, Parser, path, status
from common.terminal.tables import markdown

KINDS: Final = ("weights", "gradients", "optimizer", "activations")


def of_one(scenario: Scenario) -> Iterator[str]:
    plan, usage = scenario.plan(), scenario.usage()
    groups = f", {plan.replicas} groups of {plan.devices}" if plan.replicas > 1 else ""
    how = f"{plan.strategy}{groups}; a step, examples: {usage.examples}"
    yield f"{scenario.title()}, {how}; in bytes:"
    yield ""
    columns = [*usage.peak.values(), scenario.kept(), usage.all_sent()]
    columns += [usage.messages, usage.live]
    rows = [
        [str(device), *(f"{number:,}" for number in numbers)]
        for device, numbers in enumerate(zip(*columns, strict=True))
    ]
    yield from markdown(["device", *KINDS, "kept", "sent", "messages", "in flight"], rows)
    if plan.strategy == "pipeline":
        yield ""
        for stage, names in enumerate(plan.stages):
            most = names if len(names) < 10 else [names[0], "...", names[-1]]
            yield f"stage {stage}: {', '.join(most)}"
        events = plan.simulated(usage.examples)
        end, waits = max(event.end for event in events), bubble(events, plan.devices)
        yield (
            f"{plan.schedule}: {end:.0f} units of time, {waits:.1%} of it waiting, "
            f"which is {waits / (1 - waits):.1%} of the ideal time"
        )
    yield from times(scenario)


def of_mesh(scenario: Scenario) -> Iterator[str]:
    """Memory of a device of each stage."""
    how, net = scenario.degrees(), scenario.network()
    words = ", ".join(f"{name} {value}" for name, value in how._asdict().items())
    yield f"{scenario.title()}; {words}; a step, examples: {scenario.examples}; in GB:"
    yield ""
    rows: list[list[str]] = []
    for peak, kept, live in stages(net, how, scenario.examples, scenario.sizes()):
        sizes = [f"{size / 1e9:.3g}" for size in (*peak.values(), kept)]
        rows.append([str(len(rows)), *sizes, f"{live:.3g}"])
    yield from markdown(["stage", *KINDS, "kept", "in flight"], rows)
    yield from times(scenario)


def times(scenario: Scenario) -> Iterator[str]:
    if scenario.timed:
        time = scenario.seconds()
        parts = [f"{name} {with_prefix(part, 's')}" for name, part in time.parts.items() if part]
        yield ""
        yield f"a step takes {with_prefix(time.step, 's')}: {', '.join(parts)}"
        rest = f"{with_prefix(time.hidden, 's')} of messages overlap with computation"
        speed = f"{scenario.examples / time.step:,.0f} examples/s"
        yield f"{rest}; {speed}, {time.used:.1%} of the peak"


def of_all(scenario: Scenario) -> Iterator[str]:
    step = f"a step, examples: {scenario.examples}"
    yield f"{scenario.title()}, devices: {scenario.devices}; {step}:"
    yield ""
    rows = []
    names = list(STRATEGIES) if scenario.network().blocks.count else OF_ANY_NET
    for name in OF_EXPERTS if scenario.experts else names:
        chosen = replace(scenario, strategy=name)
        cells = [chosen.refusal(), "", "", "", *[""] * scenario.timed]
        if not cells[0]:
            usage = chosen.usage()
            sent = usage.all_sent()
            numbers = max(chosen.kept()), max(sent), sum(sent), sum(usage.messages)
            cells = [f"{number:,}" for number in numbers]
            cells += [f"{chosen.seconds().step:.3g}"] if scenario.timed else []
        rows.append([name, *cells])
    kept = "bytes kept by the fullest device"
    headings = ["strategy", kept, "sent by the busiest", "sent by all", "messages"]
    headings += ["seconds"] if scenario.timed else []
    yield from markdown(headings, rows)


def best_of(scenario: Scenario) -> Iterator[str]:
    """The five fastest plans that fit, what bounds each, and why the next one is slower."""
    memory = scenario.memory or CARDS[str(scenario.card)]["memory"]
    rows, faster = [], dict[str, float]()
    for plan, time, kept in choose(scenario, memory)[:5]:
        bounds = [f"{name} {part / time.step:.0%}" for name, part in time.parts.items()]
        more = {name: part - faster.get(name, part) for name, part in time.parts.items()}
        most, faster = max(more, key=lambda name: more[name]), time.parts
        why = f"{with_prefix(more[most], 's')} more {most}" if more[most] else ""
        numbers = f"{time.step:.3g}", f"{kept / 1e9:.3g}", f"{1 - kept / memory:.0%}"
        rows.append([*(str(getattr(plan, name)) for name in SEARCHED), *numbers, *bounds[:2], why])
    yield f"{scenario.title()}, devices: {scenario.devices}; a step, examples: {scenario.examples}:"
    yield ""
    headings = ["seconds", "GB kept", "free", "bound by", "then", "slower by"]
    yield from markdown([*SEARCHED, *headings], rows)


def idle(given: Mapping[str, Any]) -> str:
    """Which of the given flags means nothing beside the others; empty if none."""
    net, strategy = given.get("net", Scenario.net), given.get("strategy")
    nets = {flag: name for name, (_, sizes) in NETS.items() for flag in sizes}
    of_experts = "experts", "top_k", "capacity"
    nets |= dict.fromkeys((*MESH, "choose", "exchange", *of_experts), "transformer")
    meshed = next(iter(given.keys() & {*MESH[:3]}), "")
    strategies = {
        "schedule": strategy in (None, "pipeline") or "pipeline" in given,
        "exchange": strategy in (None, "context") and not meshed,
        "replicas": strategy != "data" or bool(meshed),
    }
    hardware = dict.fromkeys(("peak_share", "link", "between", "node", "choose"), ("card", "peak"))
    decided = {"parameters": "hidden", "devices": meshed, **dict.fromkeys(SEARCHED, "choose")}
    decided |= (
        {"strategy": meshed} if meshed and strategy in ("pipeline", "tensor", "context") else {}
    )
    needs = {**hardware, "memory": ("choose",), "chunks": ("pipeline",), "spread": ("pipeline",)}
    needs |= dict.fromkeys(of_experts[1:], of_experts[:1])
    for flag in given:
        name = f"--{flag.replace('_', '-')}"
        if nets.get(flag, net) != net:
            return f"{name} means nothing for --net {net}: it is for {nets[flag]}"
        if not strategies.get(flag, True):
            return f"{name} means nothing for --strategy {strategy}"
        if given.get(decisive := decided.get(flag, "")):
            return f"{name} means nothing with --{decisive}, which decides it"
        if not given.keys() & (needed := needs.get(flag, (flag,))):
            return f"{name} means nothing without --{' or --'.join(needed)}"
    few = given.get("devices", 0) <= SINGLE or "choose" in given
    return "" if few else f"more than {SINGLE} devices need --choose, or a mesh as --shards 64"


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what was asked for, and draws it. Raises RequestError or OSError."""
    parser = Parser("python -m common.plan", __doc__)
    parser.add_argument("--out", type=path, metavar="FILE.svg", help="draw the step as SVG")
    about = "A default is in brackets; a transformer's are --precision mixed, --optimizer adam. "
    about += "From --peak-share to --choose, --card or --peak is needed."
    Scenario.add_flags(parser.add_argument_group("the plan", about), "")
    flags = vars(parser.parse_args(argv))
    out = flags.pop("out")
    given = {k: value for k, value in flags.items() if value != parser.get_default(k)}
    if given.get("net") == "transformer":  # as large ones are trained
        tokens = Scenario(**given).degrees().devices() * given.get("sequence", Scenario.sequence)
        given = {"examples": tokens, "precision": "mixed", "optimizer": "adam", **given}
    scenario, one = Scenario(**given), "strategy" in given
    if out is not None:
        require_file(out, "--out", ".svg")
    unnamed = "--out draws one --strategy: name it" if out else ""
    planned = one or scenario.meshed or scenario.experts
    refused = idle(given) or unnamed * (scenario.meshed or not one)
    if refusal := refused or (scenario.refusal() if planned else ""):
        raise RequestError(refusal)
    lines = best_of if scenario.choose else of_one if one else of_all
    lines = of_mesh if scenario.meshed else lines
    print("\n".join(lines(scenario)))
    if out is not None:
        write_text(out, step(scenario.plan(), scenario.usage()))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.plan", main))
