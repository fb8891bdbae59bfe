"""Predicts each device's memory and traffic in a step of training, and draws the step.

python -m common.plan --devices 4 --microbatches 4      all strategies, side by side
python -m common.plan --strategy pipeline --devices 4 --microbatches 8 --out plan.svg
python -m common.plan --net resnet18 --strategy zero3 --optimizer adam --precision mixed
python -m common.plan --net dense --parameters 7e9 --layers 32 --strategy tensor --devices 8

Nothing is trained: the numbers are computed from the plan that a run would execute.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from common.base.errors import RequestError
from common.base.files import require_file, write_text
from common.chapters.spec import Flags, option
from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing.plans import step
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import Net, dense, lenet, resnet18
from common.parallel.pipelines import bubble
from common.parallel.plans import Plan
from common.terminal.command import Parser, status
from common.terminal.tables import markdown
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, WIDTH, above_zero, count, path

NETS: Final[dict[str, tuple[Callable[..., Net], tuple[str, ...]]]] = {
    "lenet": (lenet, ("depth",)),
    "resnet18": (resnet18, ("width",)),
    "dense": (dense, ("parameters", "layers")),
}
"""The nets, and the flags that give the size of each."""

PRECISIONS: Final = {"float32": (4, 4, 0), "float64": (8, 8, 0), "mixed": (2, 4, 4)}
"""Bytes of an element, of an element of optimizer state, and of a master weight.

In mixed precision weights, gradients and activations have 16 bits.
"""

OPTIMIZERS: Final = {"sgd": 0, "momentum": 1, "adam": 2}
"""Elements of optimizer state for each weight."""

PARAMETERS: Final = 10**13


def large(text: str) -> int:
    """A number of parameters, as 7e9 or 7000000000."""
    return int(count(PARAMETERS)(f"{above_zero(text):.0f}"))


def size(default: int, text: str, most: int, metavar: str = "N", **about: Any) -> Any:
    """A flag that takes a number."""
    text = f"{text} (%(default)s)".strip()
    return option(default, text, most=most, metavar=metavar, **about)


@dataclass(frozen=True)
class Scenario(Flags):
    """The flags that describe a plan; of the sizes, those of its `net` count."""

    strategy: str = option("data", "(else all, side by side)", known=STRATEGIES, unset=True)
    devices: int = size(4, "", DEVICES)
    replicas: int = size(1, "groups of devices", DEVICES, "R")
    microbatches: int = size(1, "of a minibatch", MICROBATCHES, "M")
    schedule: str = option("1f1b", "of a pipeline (1f1b)", known=SCHEDULES, unset=True)
    examples: int = size(256, "in a minibatch", 2**20)
    net: str = option("lenet", "dense: equal layers in a row (%(default)s)", known=NETS)
    depth: int = size(0, "lenet: more layers", DEPTH, "D", least=0)
    width: int = size(64, "resnet18: channels", WIDTH, "W")
    parameters: int = size(100_000_000, "dense", PARAMETERS, "P", type=large)
    layers: int = size(24, "dense", 200, "L")
    precision: str = option("float32", "mixed: 16 bits, state 32 (%(default)s)", known=PRECISIONS)
    optimizer: str = option("momentum", "(%(default)s)", known=OPTIMIZERS)

    def network(self) -> Net:
        """The net."""
        make, sizes = NETS[self.net]
        return make(*(getattr(self, name) for name in sizes))

    def title(self) -> str:
        """The net with its size, in words."""
        sizes = [f"{name} {getattr(self, name):,}" for name in NETS[self.net][1]]
        return " ".join([self.net, *sizes])

    def plan(self) -> Plan:
        """How the net is split."""
        how: Any = {"microbatches": self.microbatches, "schedule": self.schedule}
        where = self.strategy, self.devices, self.replicas
        return strategies.split(self.network(), *where, **how)

    def refusal(self) -> str:
        """Why there is no such plan; empty if there is one."""
        net = self.network()
        return strategies.refusal(net, self.strategy, self.devices, self.replicas)

    def usage(self) -> Usage:
        """The traffic and the peak memory of a step."""
        item, state, master = PRECISIONS[self.precision]
        per_weight = master + OPTIMIZERS[self.optimizer] * state
        return self.plan().usage(self.examples, item, per_weight)


def of_one(scenario: Scenario) -> Iterator[str]:
    """A step of one plan, device by device."""
    plan, usage = scenario.plan(), scenario.usage()
    groups = f", {plan.replicas} groups of {plan.devices}" if plan.replicas > 1 else ""
    how = f"{plan.strategy}{groups}; a step, examples: {usage.examples}"
    yield f"{scenario.title()}, {how}; in bytes:"
    yield ""
    columns = [*usage.peak.values(), usage.kept(), usage.all_sent()]
    columns += [usage.messages, usage.live]
    rows = [
        [str(device), *(f"{number:,}" for number in numbers)]
        for device, numbers in enumerate(zip(*columns, strict=True))
    ]
    kinds = ("weights", "gradients", "optimizer", "activations")
    yield from markdown(["device", *kinds, "kept", "sent", "messages", "in flight"], rows)
    if plan.strategy == "pipeline":
        yield ""
        for stage, names in enumerate(plan.stages):
            yield f"stage {stage}: {', '.join(names)}"
        events = plan.simulated(usage.examples)
        end, waits = max(event.end for event in events), bubble(events, plan.devices)
        yield (
            f"{plan.schedule}: {end:.0f} units of time, {waits:.1%} of it waiting, "
            f"which is {waits / (1 - waits):.1%} of the ideal time"
        )


def of_all(scenario: Scenario) -> Iterator[str]:
    """All strategies, side by side."""
    step = f"a step, examples: {scenario.examples}"
    yield f"{scenario.title()}, devices: {scenario.devices}; {step}:"
    yield ""
    rows = []
    for name in STRATEGIES:
        chosen = replace(scenario, strategy=name)
        cells = [chosen.refusal(), "", "", ""]
        if not cells[0]:
            usage = chosen.usage()
            sent = usage.all_sent()
            numbers = max(usage.kept()), max(sent), sum(sent), sum(usage.messages)
            cells = [f"{number:,}" for number in numbers]
        rows.append([name, *cells])
    kept = "bytes kept by the fullest device"
    headings = ["strategy", kept, "sent by the busiest", "sent by all", "messages"]
    yield from markdown(headings, rows)


def idle(given: Mapping[str, Any]) -> str:
    """Which of the given flags means nothing beside the others; empty if none."""
    net, strategy = given.get("net", Scenario.net), given.get("strategy")
    nets = {flag: name for name, (_, sizes) in NETS.items() for flag in sizes}
    strategies = {"schedule": strategy in (None, "pipeline"), "replicas": strategy != "data"}
    for flag in given:
        if nets.get(flag, net) != net:
            return f"--{flag} means nothing for --net {net}: it is for {nets[flag]}"
        if not strategies.get(flag, True):
            return f"--{flag} means nothing for --strategy {strategy}"
    return ""


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what was asked for, and draws it. Raises RequestError or OSError."""
    parser = Parser("python -m common.plan", __doc__)
    parser.add_argument("--out", type=path, metavar="FILE.svg", help="draw the step as SVG")
    Scenario.add_flags(parser.add_argument_group("the plan"), "")
    flags = vars(parser.parse_args(argv))
    out = flags.pop("out")
    given = {k: value for k, value in flags.items() if value != parser.get_default(k)}
    scenario, chosen = Scenario(**given), "strategy" in given
    if out is not None:
        require_file(out, "--out", ".svg")
    unnamed = "--out draws one --strategy: name it" if out else ""
    if refusal := idle(given) or (scenario.refusal() if chosen else unnamed):
        raise RequestError(refusal)
    if not chosen:
        print("\n".join(of_all(scenario)))
        return
    print("\n".join(of_one(scenario)))
    if out is not None:
        write_text(out, step(scenario.plan(), scenario.usage()))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.plan", main))
