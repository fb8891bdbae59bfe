"""The flags that describe a plan, and the hardware on which it is timed."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass, fields
from math import prod
from typing import Any, Final

from common.base.errors import RequestError
from common.chapters.spec import Flags, meanings, option
from common.chapters.strategies import SCHEDULES, WITH_EXPERTS
from common.parallel import nets, strategies
from common.parallel.ledger import Usage
from common.parallel.plans import Plan
from common.parallel.strategies.context import EXCHANGES
from common.scaling.cluster import Link
from common.scaling.steps import CARDS, LINKS, Cluster, Degrees, Seconds, predict, stages
from common.terminal.command import DEPTH, MICROBATCHES, WIDTH, at_least_0, count, quantity, share

TRANSFORMER: Final = ("parameters", "layers", *(each.name for each in fields(nets.Blocks)[1:]))

MESH: Final = ("tensor", "pipeline", "shards", "chunks", "spread")

NETS: Final[dict[str, tuple[Callable[..., nets.Net], tuple[str, ...]]]] = {
    "lenet": (nets.lenet, ("depth",)),
    "resnet18": (nets.resnet18, ("width",)),
    "transformer": (nets.transformer, TRANSFORMER),
}
"""The nets, and the flags that give the size of each."""

PRECISIONS: Final = {"float32": (4, 4, 0), "float64": (8, 8, 0), "mixed": (2, 4, 4)}
"""Bytes of an element, of an element of optimizer state, and of a master weight.

In mixed precision weights, gradients and activations have 16 bits.
"""

OPTIMIZERS: Final = {"sgd": 0, "momentum": 1, "adam": 2}
"""Elements of optimizer state for each weight."""

PARAMETERS, DEVICES = 10**13, 2**14

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
    """A flag whose default is in brackets, and 0 allowed if it is that; None if it is not set."""
    about = {"metavar": metavar, "unset": True, "least": int(default != 0), **about}
    return option(default, text, shown=shown or str(default), **about)


@dataclass(frozen=True)
class Scenario(Flags):
    """The flags that describe a plan; of the sizes, those of its `net` count."""

    strategy: str = flag("data", meanings(WITH_EXPERTS), known=WITH_EXPERTS, shown="all, compared")
    devices: int = flag(4, "number of devices; of a mesh, as its degrees say", most=DEVICES)
    replicas: int = flag(1, "groups, each with the whole net; a divisor of N", "R", most=DEVICES)
    microbatches: int = flag(
        0,
        "parts of a minibatch; 0: 1, of a transformer as many as sequences",
        "M",
        most=MICROBATCHES,
    )
    schedule: str = flag("1f1b", f"of a pipeline; {meanings(SCHEDULES)}", known=SCHEDULES)
    tensor: int = flag(1, "mesh: tensor-parallel degree", "T", most=DEVICES)
    pipeline: int = flag(1, "mesh: number of stages", "P", most=DEVICES)
    shards: int = flag(1, "mesh: shards of ZeRO, whose stage is --strategy's", "Z", most=DEVICES)
    chunks: int = flag(1, "mesh: chunks of each stage, interleaved", "C", most=DEVICES)
    spread: bool = option(False, "mesh: stages on different nodes, sums of gradients in a node")
    examples: int = flag(
        256, "of a minibatch, on all devices; transformer: tokens, a sequence a device", most=2**30
    )
    net: str = flag("lenet", "the net that is trained", known=NETS)
    depth: int = flag(0, "lenet: dense layers of 128 more", "D", most=DEPTH)
    width: int = flag(64, "resnet18: output channels of the first stage", "W", most=WIDTH)
    parameters: int = flag(
        10**8,
        "transformer: about so many without experts, as 7e9; H decides",
        "P",
        type=large,
        most=PARAMETERS,
    )
    layers: int = flag(24, "transformer: number of blocks", "L", most=200)
    hidden: int = flag(
        0, "transformer: width, a multiple of A; 0: as P and L need", "H", most=2**16
    )
    heads: int = flag(0, "transformer: attention heads; 0: 8 for each 1024 of H", "A", most=2**10)
    kv_heads: int = flag(0, "transformer: heads of keys and values; 0: A", "K", most=2**10)
    gated: int = flag(0, "transformer: width of a gated MLP; 0: it has 4 H", "G", most=2**18)
    vocabulary: int = flag(0, "transformer: words; 0: no embeddings, no head", "V", most=2**20)
    sequence: int = flag(2048, "transformer: tokens of a sequence", "S", most=2**20)
    attention: str = flag("flash", "transformer: flash keeps no scores", known=nets.ATTENTION)
    recompute: str = flag(
        "none",
        "transformer: in the backward pass; selective: scores, full: blocks",
        known=nets.RECOMPUTE,
    )
    exchange: str = flag(
        "ring", "context: of keys and values, or ulysses, for heads", known=EXCHANGES
    )
    experts: int = flag(0, "transformer: in every second block, 2 H wide", "E", most=2**10)
    top_k: int = flag(2, "experts of each token", "K", most=2**10)
    capacity: float = flag(1.25, "experts: slots for C equal shares; 0: all", "C", type=at_least_0)
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
        None, "operations a second at most, as 312e12", "FLOPS", "the card's", type=quantity
    )
    peak_share: float = flag(
        None, "share of the peak that is reached, at most 1", "S", "the card's, or 0.5", type=share
    )
    link: str = flag("nvlink", f"of a device in its node: {_LINK}", "LINK", type=str)
    between: str = flag("infiniband", "of a node, as --link", "LINK", type=str)
    node: int = flag(8, "number of devices in a node", most=DEVICES)
    choose: bool = option(False, "find the fastest plans that fit the memory of a device")
    memory: float = flag(
        None, "bytes of a device for --choose, as 80e9", "BYTES", "the card's", type=quantity
    )

    @property
    def timed(self) -> bool:
        """Whether the hardware is known, so that seconds are predicted."""
        return bool(self.card or self.peak)

    def network(self, **how: Any) -> nets.Net:
        make, sizes = NETS[self.net]
        if self.experts:
            how["experts"] = nets.Experts(self.experts, self.top_k, self.capacity)
        return make(**how, **{name: getattr(self, name) for name in sizes})

    def title(self) -> str:
        """The net with its size, in words; the number of a transformer's parameters in 3 digits."""
        net, names = self.network(), NETS[self.net][1]
        blocks = net.blocks  # they know what 0 stands for
        sizes = {name: getattr(blocks, name, getattr(self, name)) for name in names}
        if "parameters" in sizes:
            sizes["parameters"] = int(float(f"{sum(map(net.size, net.layers)):.3g}"))
        words = [f"{k} {v}" if isinstance(v, str) else f"{k} {v:,}" for k, v in sizes.items() if v]
        if self.experts:
            words += [f"experts {self.experts} top-k {self.top_k} capacity {self.capacity:g}"]
        return " ".join([self.net, *words])

    def plan(self) -> Plan:
        where = self.strategy, self.devices, self.replicas
        # An example is a sequence where devices share it, else a token.
        net = self.network(tokens=self.sequence) if self.strategy == "context" else self.network()
        m, order = self.degrees().microbatches, self.schedule
        return strategies.split(net, *where, microbatches=m, schedule=order, exchange=self.exchange)

    @property
    def meshed(self) -> bool:
        """Whether degrees of a mesh are given, not one strategy with replicas."""
        return self.tensor * self.pipeline * self.shards > 1

    def degrees(self) -> Degrees:
        """The mesh, or that of the strategy; shards are those of ZeRO-1 unless it says others."""
        mesh: dict[str, Any] = {name: getattr(self, name) for name in MESH}
        zero = int(self.strategy[-1]) if "zero" in self.strategy else int(self.shards > 1)
        row = max(1, self.devices // self.replicas)  # more replicas than devices are refused
        of_data = {name: row if self.strategy == name else 1 for name in ("context", "expert")}
        if not self.meshed and self.strategy not in ("data", *of_data):
            mesh["shards" if zero else self.strategy] = row
        data = not self.meshed and self.strategy == "data"
        replicas, blocks = self.devices if data else self.replicas, self.network().blocks
        group = mesh["shards"] * replicas * (blocks.sequence if blocks.count else self.examples)
        m = self.microbatches or max(1, self.examples // group)
        if self.experts:  # the auxiliary loss is that of the whole minibatch
            m = 1
        mesh |= {"replicas": replicas * prod(of_data.values()), "exchange": self.exchange}
        mesh |= of_data
        return Degrees(**mesh, zero=zero, microbatches=m, schedule=self.schedule)

    def refusal(self) -> str:
        """Why there is no such plan; empty if there is one."""
        if why := self._of_experts():
            return why
        net, how = self.network(), self.degrees()
        drops = how.chunks > 1 or self.recompute == "full"
        if drops and how.schedule == "zb1" and how.pipeline > 1:
            return "--schedule zb1 is planned without --chunks and without --recompute full"
        if not self.meshed:
            where = self.strategy, self.devices, self.replicas
            uneven = self.strategy == "context" and self.examples % self.sequence
            whole = f"examples are whole sequences: ask for a multiple of {self.sequence}"
            return strategies.refusal(net, *where, exchange=self.exchange) or whole * bool(uneven)
        if how.chunks > 1 and how.microbatches % how.pipeline:
            return f"--chunks need a multiple of {how.pipeline} --microbatches"
        tensor = strategies.refusal(net, "tensor", how.tensor)
        return tensor or strategies.refusal(net, "pipeline", how.pipeline * how.chunks)

    def _of_experts(self) -> str:
        if not self.experts:
            return "--strategy expert needs --experts" * (self.strategy == "expert")
        alone = not (self.meshed or self.choose or self.gated or self.microbatches > 1)
        if self.strategy not in strategies.OF_EXPERTS or not alone:
            what = "without a mesh, --choose, --gated and --microbatches"
            return f"--experts are planned for --strategy data or expert, {what}"
        few = self.top_k > self.experts or self.layers < 2
        return "--experts: at least as many as --top-k, in every second of --layers" * few

    def usage(self) -> Usage:
        examples = self.examples // (self.sequence if self.strategy == "context" else 1)
        return self.plan().usage(examples, *self.sizes())

    def kept(self) -> list[int]:
        """The most bytes at one time of each device; of a mesh, of each stage's."""
        net, how = self.network(), self.degrees()
        if self.experts:  # of one microbatch, activations are freed as gradients grow
            weights, gradients, state, activations = self.usage().peak.values()
            changing = map(max, gradients, activations)
            return [sum(kept) for kept in zip(weights, state, changing, strict=True)]
        if not net.blocks.count:  # layers that differ may need the peaks of all kinds at once
            return self.usage().kept()
        found = [round(kept) for _, kept, _ in stages(net, how, self.examples, self.sizes())]
        return found if self.meshed else found * (self.devices // len(found))

    def sizes(self) -> tuple[int, int]:
        """The bytes of an element, and of the optimizer state of a weight."""
        item, state, master = PRECISIONS[self.precision]
        return item, master + OPTIMIZERS[self.optimizer] * state

    def cluster(self) -> Cluster:
        card = CARDS.get(str(self.card), {"share": 0.5})
        peak = self.peak or card[self.precision]
        speed = (self.peak_share or card["share"]) * peak
        return Cluster(speed, peak, link(self.link), link(self.between), self.node)

    def seconds(self) -> Seconds:
        how, item = self.degrees(), self.sizes()[0]
        return predict(self.network(), how, self.examples, self.cluster(), item)
