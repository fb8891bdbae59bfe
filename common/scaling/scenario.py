"""The flags that describe a plan, and the hardware on which it is timed."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from common.base.errors import RequestError
from common.chapters.spec import Flags, meanings, option
from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import RECOMPUTE, Net, lenet, resnet18, transformer
from common.parallel.plans import Plan
from common.scaling.cluster import Link
from common.scaling.steps import CARDS, LINKS, Cluster, Seconds, degrees, predict
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, WIDTH, count, quantity, share

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

_LINK: Final = f"{', '.join(LINKS)}, or seconds of a message and bytes a second, as 5e-6,25e9"


def large(text: str) -> int:
    """A number of parameters, as 7e9 or 7000000000."""
    return int(count(PARAMETERS)(f"{quantity(text):.0f}"))


def link(text: str) -> Link:
    """A link by name, or by its seconds of a message and bytes a second: 5e-6,25e9."""
    if text in LINKS:
        return LINKS[text]
    try:
        latency, speed = map(quantity, text.split(","))
    except (ValueError, ArgumentTypeError):
        raise RequestError(f"{text!r} is no link: ask for {_LINK}") from None
    return Link(latency, 1 / speed, 0)


def flag(default: Any, text: str, metavar: str = "N", shown: str = "", **about: Any) -> Any:
    """A flag whose default is in brackets; None if it is not set."""
    return option(default, f"{text} ({shown or default})", metavar=metavar, unset=True, **about)


@dataclass(frozen=True)
class Scenario(Flags):
    """The flags that describe a plan; of the sizes, those of its `net` count."""

    strategy: str = flag("data", meanings(STRATEGIES), known=STRATEGIES, shown="all, compared")
    devices: int = flag(4, "number of devices", most=DEVICES)
    replicas: int = flag(
        1, "groups of devices, each with the whole net; a divisor of N", "R", most=DEVICES
    )
    microbatches: int = flag(1, "number of parts of a minibatch", "M", most=MICROBATCHES)
    schedule: str = flag("1f1b", f"of a pipeline; {meanings(SCHEDULES)}", known=SCHEDULES)
    examples: int = flag(
        256,
        "examples of a minibatch, on all devices together; of a transformer, tokens",
        most=2**24,
        shown="256; transformer: 16384",
    )
    net: str = flag("lenet", "the net; a transformer has blocks, no embeddings", known=NETS)
    depth: int = flag(0, "lenet: dense layers of 128 more", "D", most=DEPTH, least=0)
    width: int = flag(64, "resnet18: output channels of the first stage", "W", most=WIDTH)
    parameters: int = flag(
        100_000_000,
        "transformer: about this number of parameters, as 7e9; H decides it if given",
        "P",
        type=large,
        most=PARAMETERS,
    )
    layers: int = flag(24, "transformer: number of blocks", "L", most=200)
    hidden: int = flag(
        0,
        "transformer: hidden size, divisible by A; 0: as P and L need, divisible by a given A",
        "H",
        most=2**16,
        least=0,
    )
    heads: int = flag(
        0, "transformer: attention heads; 0: 8 for each 1024 of H", "A", most=2**10, least=0
    )
    sequence: int = flag(2048, "transformer: tokens of a sequence", "T", most=2**20)
    recompute: str = flag(
        "none",
        "transformer: what the backward pass recomputes to save memory: nothing, attention's "
        "scores (selective), or whole blocks (full)",
        known=RECOMPUTE,
    )
    precision: str = flag(
        "float32", "of elements; mixed: 16 bits, but optimizer state 32", known=PRECISIONS
    )
    optimizer: str = flag(
        "momentum", "its state for each parameter: sgd 0, momentum 1, adam 2", known=OPTIMIZERS
    )
    card: str | None = flag(
        None, "GPU of each device; predicts seconds", known=CARDS, shown="no seconds"
    )
    peak: float = flag(
        None,
        "operations a second of a device at most, as 312e12",
        "FLOPS",
        "the card's",
        type=quantity,
    )
    peak_share: float = flag(0.5, "share of the peak that is reached, at most 1", "S", type=share)
    link: str = flag("nvlink", f"between devices of a node: {_LINK}", "LINK", type=str)
    between: str = flag("infiniband", "between nodes, as --link", "LINK", type=str)
    node: int = flag(8, "number of devices in a node", most=DEVICES)
    choose: bool = option(False, "find the fastest plans that fit the memory of a device")
    memory: float = flag(
        None,
        "bytes that a device has for --choose, as 80e9",
        "BYTES",
        "the card's",
        type=quantity,
    )

    @property
    def timed(self) -> bool:
        """Whether the hardware is known, so that seconds are predicted."""
        return bool(self.card or self.peak)

    def network(self) -> Net:
        make, sizes = NETS[self.net]
        return make(**{name: getattr(self, name) for name in sizes})

    def title(self) -> str:
        """The net with its size, in words; the number of a transformer's parameters in 3 digits."""
        net, names = self.network(), NETS[self.net][1]
        blocks = net.blocks  # they know what 0 stands for
        sizes = {name: getattr(blocks, name, getattr(self, name)) for name in names}
        if "parameters" in sizes:
            sizes["parameters"] = int(float(f"{sum(map(net.size, net.layers)):.3g}"))
        words = [f"{k} {v}" if isinstance(v, str) else f"{k} {v:,}" for k, v in sizes.items()]
        return " ".join([self.net, *words])

    def plan(self) -> Plan:
        net, where = self.network(), (self.strategy, self.devices, self.replicas)
        m, order = self.microbatches, self.schedule
        return strategies.split(net, *where, microbatches=m, schedule=order)

    def refusal(self) -> str:
        net = self.network()
        return strategies.refusal(net, self.strategy, self.devices, self.replicas)

    def usage(self) -> Usage:
        return self.plan().usage(self.examples, *self.sizes())

    def sizes(self) -> tuple[int, int]:
        """The bytes of an element, and of the optimizer state of a weight."""
        item, state, master = PRECISIONS[self.precision]
        return item, master + OPTIMIZERS[self.optimizer] * state

    def seconds(self) -> Seconds:
        plan, peak = self.plan(), self.peak or CARDS[str(self.card)][self.precision]
        links = link(self.link), link(self.between)
        cluster = Cluster(self.peak_share * peak, peak, *links, self.node)
        return predict(plan, degrees(plan), self.examples, cluster, self.sizes()[0])
