"""What a step of training keeps and sends on each device, if it is split so; and a picture of it.

python -m common.plan --devices 4 --microbatches 4                 all strategies, side by side
python -m common.plan --strategy pipeline --devices 4 --microbatches 8 --out plan.svg
python -m common.plan --net resnet18 --strategy zero3 --optimizer adam --precision mixed
python -m common.plan --net dense --parameters 7e9 --layers 32 --strategy tensor --devices 8
python -m common.plan --of results/jax-strategies-pipeline-4dev.json --out run.svg

Nothing is trained: the numbers are computed from the plan that a run would execute. `--of` takes
the plan of a run from its record, and tells what the run has counted, and in which order it went.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[1]))

from common.base.errors import RequestError
from common.base.files import require_apart, require_svg, write_text
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.drawing.timelines import step
from common.parallel.ledger import Event, Usage
from common.parallel.pipelines import bubble, simulate
from common.parallel.plans import Plan
from common.parallel.scenarios import OPTIMIZERS, PRECISIONS, Scenario
from common.records.record import Record
from common.records.store import read_record
from common.terminal.command import Parser, status
from common.terminal.tables import markdown
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, WIDTH, above_zero, count, path

LAYERS: Final = 200
"""The most dense layers."""

SIZES: Final = {"lenet": ("depth",), "resnet18": ("width",), "dense": ("parameters", "layers")}
"""The nets, and the flags that give the size of each."""

NOT_DATA: Final = tuple(name for name in STRATEGIES if name != "data")

PARAMETERS: Final = 10**13

EXAMPLES: Final = 2**20


@dataclass(frozen=True)
class Step:
    """A step of a plan, what it takes and, if a run took it, what this has `counted` and did."""

    net: str
    plan: Plan
    usage: Usage
    counted: Usage | None = None
    events: Sequence[Event] = ()

    def lines(self) -> Iterator[str]:
        """What is printed of it."""
        plan, usage = self.plan, self.usage
        groups = f", {plan.replicas} groups of {plan.devices}" if plan.replicas > 1 else ""
        yield f"{self.net}, {plan.strategy}{groups}; a step, examples: {usage.examples}; in bytes:"
        yield ""
        kept, sent = (list(zip(*each.values(), strict=True)) for each in (usage.peak, usage.sent))
        rows = [
            [
                str(device),
                *(f"{size:,}" for size in (*sizes, sum(sizes), sum(sent[device]))),
                f"{usage.messages[device]:,}",
                str(usage.live[device]),
            ]
            for device, sizes in enumerate(kept)
        ]
        kinds = ("weights", "gradients", "optimizer", "activations")
        yield from markdown(["device", *kinds, "kept", "sent", "messages", "live"], rows)
        if plan.strategy == "pipeline":
            yield ""
            yield from self._order()
        if self.counted:
            equal = self.counted == usage
            yield ""
            yield f"The run has counted {'just this' if equal else f'this: {self.counted}'}."

    def _order(self) -> Iterator[str]:
        """Of a pipeline, its stages, how long they wait, and whether a run went in this order."""
        for stage, names in enumerate(self.plan.stages):
            yield f"stage {stage}: {', '.join(names)}"
        order = self.plan.order_of(self.usage.examples)
        planned = simulate(order)
        end, waits = max(each.end for each in planned), bubble(planned, self.plan.devices)
        yield f"{self.plan.schedule}: {end:.0f} units of time, {waits:.1%} of it waiting"
        if self.counted:
            yield f"The run has gone in {'this' if self.in_order() else 'another'} order."

    def in_order(self) -> bool:
        """Whether each device of a run did its passes as planned, one after the other."""
        plan = self.plan
        for replica, rows in enumerate(plan.rows_of(self.usage.examples)):
            order = plan.order(len(plan.microbatches_of(rows.stop - rows.start)))
            for device, passes in enumerate(order, replica * plan.devices):
                own = [each for each in self.events if each.device == device]
                went = [(each.what == "forward", each.microbatch) for each in own]
                if went != [(each.forward, each.microbatch) for each in passes]:
                    return False
        return True


def of_record(record: Record) -> Step:
    """The step that a run has counted. Raises RequestError if it has counted none."""
    split, options = record.split, record.config.options
    usage = record.config.usage(split.counted.examples) if split else None
    if split is None or usage is None or not isinstance(options, StrategiesOptions):
        raise RequestError("this run has counted no step: only those of strategies do, by hand")
    # By the plan, and not what the record says of it: it may come from anyone.
    plan = options.plan(record.config.devices)
    return Step(options.net(), plan, usage, split.counted, split.events)


def side_by_side(given: Scenario) -> Iterator[str]:
    """All strategies, as a table."""
    yield f"{net_of(given)}, devices: {given.devices}; a step, examples: {given.examples}:"
    yield ""
    rows = []
    for name in STRATEGIES:
        each = replace(given, strategy=name)
        cells = [each.refusal(), "", ""]
        if not cells[0]:
            usage = each.usage()
            kept = max(map(sum, zip(*usage.peak.values(), strict=True)))
            sent = sum(map(sum, usage.sent.values()))
            cells = [f"{kept:,}", f"{sent:,}", f"{sum(usage.messages):,}"]
        rows.append([name, *cells])
    headings = ["strategy", "bytes kept by the fullest device", "sent by all", "messages"]
    yield from markdown(headings, rows)


def parser() -> Parser:
    """The flags."""
    made = Parser(
        prog="python -m common.plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(name: str, text: str = "", **how: Any) -> None:
        """A flag of a plan; its help ends with its default, which only the scenario sets."""
        text = f"{text} ({getattr(Scenario, name)})".strip()
        made.add_argument(f"--{name}", help=text, default=argparse.SUPPRESS, **how)

    record = "take the plan of a run from its record, without other flags of plans"
    made.add_argument("--of", type=path, metavar="FILE", help=record)
    made.add_argument("--out", type=path, metavar="FILE.svg", help="draw the step as SVG")
    ways = "how training is split (else all ways, side by side)"
    made.add_argument("--strategy", choices=STRATEGIES, default=argparse.SUPPRESS, help=ways)
    add("devices", type=count(DEVICES), metavar="N")
    add("replicas", "groups of devices", type=count(DEVICES), metavar="R")
    add("microbatches", "of a minibatch", type=count(MICROBATCHES), metavar="M")
    add("schedule", "of a pipeline", choices=SCHEDULES)
    add("examples", "in a minibatch", type=count(EXAMPLES), metavar="N")
    add("net", "dense: equal layers in a row", choices=SIZES)
    add("depth", "lenet: layers more", type=count(DEPTH, least=0), metavar="D")
    add("width", "resnet18: channels", type=count(WIDTH), metavar="W")
    add("parameters", "dense", type=large, metavar="P")
    add("layers", "dense", type=count(LAYERS), metavar="L")
    precision = "mixed: 16 bits, and 32 for what the optimizer keeps"
    add("precision", precision, choices=PRECISIONS)
    add("optimizer", choices=OPTIMIZERS)
    return made


def net_of(scenario: Scenario) -> str:
    """The net with its size, in words."""
    sizes = [f"{name} {getattr(scenario, name):,}" for name in SIZES[scenario.net]]
    return " ".join([scenario.net, *sizes])


def require_meaning(given: Mapping[str, Any]) -> None:
    """Raises RequestError if one of the given flags means nothing beside the others."""
    net, strategy = given.get("net", Scenario.net), given.get("strategy")
    for other, names in SIZES.items():
        for name in names:
            if name in given and other != net:
                raise RequestError(f"--{name} means nothing for --net {net}: it is for {other}")
    for name, kinds in {"schedule": ("pipeline",), "replicas": NOT_DATA}.items():
        if name in given and strategy is not None and strategy not in kinds:
            raise RequestError(f"--{name} means nothing for --strategy {strategy}")


def large(text: str) -> int:
    """A number of parameters, as 7e9 or 7000000000."""
    found = above_zero(text)
    if found > PARAMETERS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {PARAMETERS:,}")
    return int(found)


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what was asked for, and draws it. Raises RequestError, RunError or OSError."""
    flags = parser().parse_args(argv)
    given = {name: value for name, value in vars(flags).items() if name not in ("of", "out")}
    if flags.out is not None:
        require_svg(flags.out, "--out")
    if flags.of is not None:
        for name in given:
            raise RequestError(f"--{name} means nothing beside --of: the record has the plan")
        if flags.out is not None:
            require_apart({"--out": flags.out, "--of": flags.of})
        found = of_record(read_record(flags.of))
    else:
        require_meaning(given)
        scenario = Scenario(**given)
        if "strategy" not in given:
            if flags.out is not None:
                raise RequestError("--out draws one --strategy: name it")
            print("\n".join(side_by_side(scenario)))
            return
        if refusal := scenario.refusal():
            raise RequestError(refusal)
        found = Step(net_of(scenario), scenario.plan(), scenario.usage())
    print("\n".join(found.lines()))
    if flags.out is not None:
        write_text(flags.out, step(found.plan, found.usage, found.events))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.plan", main))
