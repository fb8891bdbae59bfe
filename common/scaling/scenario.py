"""The flags that describe a plan, and the hardware on which it is timed."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from common.base.errors import RequestError
from common.chapters.spec import Flags, option
from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import RECOMPUTE, Net, lenet, resnet18, transformer
from common.parallel.plans import Plan
from common.scaling.cluster import Link
from common.scaling.steps import CARDS, LINKS, Cluster, Seconds, degrees, predict
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, WIDTH, above_zero, count, share

TRANSFORMER: Final = ("parameters", "layers", "hidden", "heads", "sequence", "recompute")

NETS: Final[dict[str, tuple[Callable[..., Net], tuple[str, ...]]]] = {
    "lenet": (lenet, ("depth",)),
    "resnet18": (resnet18, ("width",)),
    "transformer": (transformer, TRANSFORMER),
}
"""The nets, and the flags that give the size of each."""

PRECISIONS: Final = {"float32": (4, 4, 0), "float64": (8, 8, 0), "mixed": (2, 4, 4)}
"""Bytes of an element, of an element of optimizer state, and of a master weight.

In mixed precision weights, gradients and activations have 16 bits.
"""

OPTIMIZERS: Final = {"sgd": 0, "momentum": 1, "adam": 2}
"""Elements of optimizer state for each weight."""

PARAMETERS: Final = 10**13

_LINK: Final = f"{', '.join(LINKS)}, or SECONDS,BYTES/S"


def large(text: str) -> int:
    """A number of parameters, as 7e9 or 7000000000."""
    return int(count(PARAMETERS)(f"{above_zero(text):.0f}"))


def link(text: str) -> Link:
    """A link by name, or by its seconds of a message and bytes a second: 5e-6,25e9."""
    if text in LINKS:
        return LINKS[text]
    try:
        latency, speed = map(above_zero, text.split(","))
    except (ValueError, ArgumentTypeError):
        raise RequestError(f"{text!r} is no link: ask for {_LINK}, as 5e-6,25e9") from None
    return Link(latency, 1 / speed, 0)


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
    examples: int = option(256, "(256; tokens: 16384)", most=2**24, metavar="N", unset=True)
    net: str = option("lenet", "examples of a transformer are tokens (%(default)s)", known=NETS)
    depth: int = size(0, "lenet: more layers", DEPTH, "D", least=0)
    width: int = size(64, "resnet18: channels", WIDTH, "W")
    parameters: int = size(100_000_000, "transformer", PARAMETERS, "P", type=large)
    layers: int = size(24, "transformer", 200, "L")
    hidden: int = size(0, "transformer; 0: by P and L", 2**16, "H", least=0)
    heads: int = size(0, "transformer; 0: 8 for each 1024 of H", 2**10, "A", least=0)
    sequence: int = size(2048, "transformer: tokens", 2**20, "T")
    recompute: str = option("none", "transformer, backward (%(default)s)", known=RECOMPUTE)
    precision: str = option("float32", "mixed: 16 bits, state 32 (%(default)s)", known=PRECISIONS)
    optimizer: str = option("momentum", "(%(default)s)", known=OPTIMIZERS)
    card: str | None = option(None, "predict seconds on this GPU", known=CARDS)
    peak: float = option(None, "operations/s, not the card's", type=above_zero, metavar="FLOPS")
    peak_share: float = option(0.5, "reached of the peak (%(default)s)", type=share, metavar="S")
    link: str = option("nvlink", f"in a node: {_LINK} (%(default)s)", type=str, metavar="LINK")
    between: str = option("infiniband", "between nodes (%(default)s)", type=str, metavar="LINK")
    node: int = size(8, "devices of a node", DEVICES)
    choose: bool = option(False, "find the fastest plans that fit the card's memory")
    memory: float = option(None, "not the card's", type=above_zero, metavar="BYTES")

    def network(self) -> Net:
        """The net."""
        make, sizes = NETS[self.net]
        return make(**{name: getattr(self, name) for name in sizes})

    def title(self) -> str:
        """The net with its size, in words."""
        blocks, names = self.network().blocks, NETS[self.net][1]  # blocks know what 0 stands for
        sizes = {name: getattr(blocks, name, getattr(self, name)) for name in names}
        words = [f"{k} {v}" if isinstance(v, str) else f"{k} {v:,}" for k, v in sizes.items()]
        return " ".join([self.net, *words])

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
        return self.plan().usage(self.examples, *self.sizes())

    def sizes(self) -> tuple[int, int]:
        """The bytes of an element, and of the optimizer state of a weight."""
        item, state, master = PRECISIONS[self.precision]
        return item, master + OPTIMIZERS[self.optimizer] * state

    def seconds(self) -> Seconds:
        """The time of a step on the card."""
        plan, peak = self.plan(), self.peak or CARDS[str(self.card)][self.precision]
        links = link(self.link), link(self.between)
        cluster = Cluster(self.peak_share * peak, peak, *links, self.node)
        return predict(plan, degrees(plan), self.examples, cluster, self.sizes()[0])
