"""Predicts the memory and the traffic of each device in a step of training, and draws the step.

python -m common.plan --devices 4 --microbatches 4                 all strategies, side by side
python -m common.plan --strategy pipeline --devices 4 --microbatches 8 --out plan.svg
python -m common.plan --net resnet18 --strategy zero3 --optimizer adam --precision mixed
python -m common.plan --net dense --parameters 7e9 --layers 32 --strategy tensor --devices 8
python -m common.plan --of results/jax-strategies-pipeline-4dev.json --out run.svg

Nothing is trained: the numbers are computed from the plan that a run would execute. `--of` takes
the plan from the record of a run, and compares it with what the run has counted.
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
from common.chapters.spec import Flags, option
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.drawing.plans import step
from common.parallel import strategies
from common.parallel.costs import predicted
from common.parallel.ledger import Event, Usage
from common.parallel.nets import Net, dense, lenet, resnet18
from common.parallel.pipelines import bubble
from common.parallel.plans import Plan
from common.records.record import Record, Split
from common.records.store import read_record
from common.terminal.command import Parser, status
from common.terminal.tables import markdown
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, WIDTH, above_zero, path

SIZES: Final = {"lenet": ("depth",), "resnet18": ("width",), "dense": ("parameters", "layers")}
"""The nets, and the flags that give the size of each."""

PRECISIONS: Final = {"float32": (4, 4, 0), "float64": (8, 8, 0), "mixed": (2, 4, 4)}
"""Bytes of an element, of an element of optimizer state, and of the optimizer's master weight.

In mixed precision weights, gradients and activations have 16 bits.
"""

OPTIMIZERS: Final = {"sgd": 0, "momentum": 1, "adam": 2}
"""Elements of optimizer state for each weight."""

PARAMETERS: Final = 10**13


def large(text: str) -> int:
    """A number of parameters, as 7e9 or 7000000000."""
    found = above_zero(text)
    if found > PARAMETERS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {PARAMETERS:,}")
    return int(found)


def size(default: int, text: str, most: int, metavar: str = "N", **about: Any) -> Any:
    """A flag that takes a number."""
    text = f"{text} (%(default)s)".strip()
    return option(default, text, most=most, metavar=metavar, **about)


@dataclass(frozen=True)
class Scenario(Flags):
    """The flags that describe a plan; of the sizes, those of its `net` count."""

    strategy: str = option(
        "data",
        "how training is split (else all strategies, side by side)",
        known=STRATEGIES,
        unset=True,
    )
    devices: int = size(4, "", DEVICES)
    replicas: int = size(1, "groups of devices", DEVICES, "R")
    microbatches: int = size(1, "of a minibatch", MICROBATCHES, "M")
    schedule: str = option("1f1b", "of a pipeline (1f1b)", known=SCHEDULES, unset=True)
    examples: int = size(256, "in a minibatch", 2**20)
    net: str = option("lenet", "dense: equal layers in a row (%(default)s)", known=SIZES)
    depth: int = size(0, "lenet: more layers", DEPTH, "D", least=0)
    width: int = size(64, "resnet18: channels", WIDTH, "W")
    parameters: int = size(100_000_000, "dense", PARAMETERS, "P", type=large)
    layers: int = size(24, "dense", 200, "L")
    precision: str = option(
        "float32", "mixed: 16 bits, and 32 for optimizer state (%(default)s)", known=PRECISIONS
    )
    optimizer: str = option("momentum", "(%(default)s)", known=OPTIMIZERS)

    def network(self) -> Net:
        """The net."""
        if self.net == "lenet":
            return lenet(self.depth)
        return (
            resnet18(self.width) if self.net == "resnet18" else dense(self.parameters, self.layers)
        )

    def title(self) -> str:
        """The net with its size, in words."""
        sizes = [f"{name} {getattr(self, name):,}" for name in SIZES[self.net]]
        return " ".join([self.net, *sizes])

    def plan(self) -> Plan:
        """How the net is split."""
        how = {"microbatches": self.microbatches, "schedule": self.schedule}
        return strategies.split(self.network(), self.strategy, self.devices, self.replicas, **how)

    def refusal(self) -> str:
        """Why there is no such plan; empty if there is one."""
        if self.net == "dense" and self.parameters < self.layers:
            return f"{self.layers} layers have at least as many parameters, not {self.parameters}"
        return strategies.refusal(self.network(), self.strategy, self.devices, self.replicas)

    def usage(self) -> Usage:
        """The traffic and the peak memory of a step."""
        item, state, master = PRECISIONS[self.precision]
        per_weight = master + OPTIMIZERS[self.optimizer] * state
        return predicted(self.plan(), self.examples, item, per_weight)


def lines_of(net: str, plan: Plan, usage: Usage, run: Split | None = None) -> Iterator[str]:
    """The lines that are printed of a step of a plan, and of a run of it."""
    groups = f", {plan.replicas} groups of {plan.devices}" if plan.replicas > 1 else ""
    yield f"{net}, {plan.strategy}{groups}; a step, examples: {usage.examples}; in bytes:"
    yield ""
    kept, sent = (list(zip(*each.values(), strict=True)) for each in (usage.peak, usage.sent))
    rows = []
    for device, sizes in enumerate(kept):
        numbers = [*sizes, sum(sizes), sum(sent[device]), usage.messages[device]]
        rows.append([str(device), *(f"{each:,}" for each in numbers), str(usage.live[device])])
    kinds = ("weights", "gradients", "optimizer", "activations")
    yield from markdown(["device", *kinds, "kept", "sent", "messages", "live"], rows)
    if plan.strategy == "pipeline":
        yield ""
        for stage, names in enumerate(plan.stages):
            yield f"stage {stage}: {', '.join(names)}"
        events = plan.simulated(usage.examples)
        end, waits = max(each.end for each in events), bubble(events, plan.devices)
        yield f"{plan.schedule}: {end:.0f} units of time, {waits:.1%} of it waiting"
        if run:
            same = in_order(plan, usage.examples, run.events)
            yield f"The run has gone in {'this' if same else 'another'} order."
    if run:
        counted = "just this" if run.counted == usage else f"this: {run.counted}"
        yield ""
        yield f"The run has counted {counted}."


def in_order(plan: Plan, examples: int, events: Sequence[Event]) -> bool:
    """Whether each device of a pipeline did its passes in the order of the plan."""
    for replica, rows in enumerate(plan.rows_of(examples)):
        order = plan.order(len(plan.microbatches_of(rows.stop - rows.start)))
        for device, passes in enumerate(order, replica * plan.devices):
            own = [each for each in events if each.device == device]
            went = [(each.what == "forward", each.microbatch) for each in own]
            if went != [(each.forward, each.microbatch) for each in passes]:
                return False
    return True


def of_record(record: Record) -> tuple[str, Plan, Usage, Split]:
    """The net and the plan of a run, what a step of it takes, and what the run has counted.

    Raises RequestError if the run has counted no step.
    """
    run, options = record.split, record.config.options
    usage = record.config.usage(run.counted.examples) if run else None
    if run is None or usage is None or not isinstance(options, StrategiesOptions):
        raise RequestError("this run has counted no step: only those of strategies do, by hand")
    # By the plan, and not what the record says of it: it may come from anyone.
    return options.net(), options.plan(record.config.devices), usage, run


def side_by_side(given: Scenario) -> Iterator[str]:
    """All strategies, as a table."""
    yield f"{given.title()}, devices: {given.devices}; a step, examples: {given.examples}:"
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
    made = Parser("python -m common.plan", __doc__)

    record = "take the plan of a run from its record, without other flags of plans"
    made.add_argument("--of", type=path, metavar="FILE", help=record)
    made.add_argument("--out", type=path, metavar="FILE.svg", help="draw the step as SVG")
    Scenario.add_flags(made.add_argument_group("the plan"), "")
    return made


def require_meaning(given: Mapping[str, Any]) -> None:
    """Raises RequestError if one of the given flags means nothing beside the others."""
    net, strategy = given.get("net", Scenario.net), given.get("strategy")
    for other, names in SIZES.items():
        for name in given.keys() & set(names) if other != net else ():
            raise RequestError(f"--{name} means nothing for --net {net}: it is for {other}")
    idle = {"schedule": strategy not in (None, "pipeline"), "replicas": strategy == "data"}
    for name in given:
        if idle.get(name):
            raise RequestError(f"--{name} means nothing for --strategy {strategy}")


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what was asked for, and draws it. Raises RequestError, RunError or OSError."""
    made = parser()
    flags = made.parse_args(argv)
    settings = {name: value for name, value in vars(flags).items() if name not in ("of", "out")}
    given = {k: value for k, value in settings.items() if value != made.get_default(k)}
    if flags.out is not None:
        require_svg(flags.out, "--out")
    if flags.of is not None:
        for name in given:
            raise RequestError(f"--{name} means nothing beside --of: the record has the plan")
        if flags.out is not None:
            require_apart({"--out": flags.out, "--of": flags.of})
        net, plan, usage, run = of_record(read_record(flags.of))
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
        net, plan, usage, run = scenario.title(), scenario.plan(), scenario.usage(), None
    print("\n".join(lines_of(net, plan, usage, run)))
    if flags.out is not None:
        write_text(flags.out, step(plan, usage, run.events if run else ()))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.plan", main))
