"""Predicts the memory and the seconds of a training step on a mesh of devices.

Counted bytes are those of a star, seconds those of rings. Updates and reading data are free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import Final, NamedTuple

from common.parallel.nets import Net
from common.parallel.pipelines import IN_FLIGHT
from common.scaling.cluster import Link

CARDS: Final = {
    "a100": {"mixed": 312e12, "float32": 156e12, "float64": 19.5e12, "memory": 80e9, "share": 0.62},
    "h100": {"mixed": 989e12, "float32": 495e12, "float64": 67e12, "memory": 80e9, "share": 0.43},
    "rtx4090": {"mixed": 165e12, "float32": 83e12, "float64": 1.3e12, "memory": 24e9, "share": 0.5},
}
"""Dense peak operations a second (float32: TF32) and bytes of memory, from data sheets.

The `share` of the peak is fitted to MPT's published runs on 8 cards without recomputation
(docs/splitting.md); RTX 4090's is an assumption.
"""

LINKS: Final = {
    "nvlink": Link(3.4e-6, 1 / 240e9, 0),
    "nvlink4": Link(3.4e-6, 1 / 370e9, 0),
    "pcie": Link(5.7e-6, 1 / 24e9, 0),
    "host": Link(24e-6, 1 / 12e9, 0),
    "infiniband": Link(9.6e-6, 1 / 200e9, 0),
    "ethernet": Link(30e-6, 1 / 12.5e9, 0),
}
"""Seconds of a message, and of a byte each way: of a device, the last two of a whole node.

NCCL's latencies (`src/graph/tuning.cc`, ring, protocol Simple) and bytes (`src/graph/topo.h`):
A100 has 12 links of 20e9, H100 18 of 20.6e9, PCIe 4.0 24e9. Without peer-to-peer, as RTX 4090,
cards send through their `host`. A node has 8 ports of InfiniBand of 200 Gbit/s, or 100 Gbit/s
of Ethernet. The host's half of PCIe, its latency and TCP's are assumptions.
"""


class Degrees(NamedTuple):
    """How devices share a step: innermost is `tensor`, then `pipeline`, `shards`, `replicas`.

    If `spread`, stages are outermost: they are on different nodes, and gradients are summed in
    a node. Shards are those of ZeRO's stage `zero`. Of the replicas, `context` share each
    sequence, by an `exchange`, or `expert` share the experts. In an interleaved pipeline
    (Narayanan et al., 2021, section 2.2), a device has `chunks`.
    """

    tensor: int = 1
    pipeline: int = 1
    shards: int = 1
    replicas: int = 1
    zero: int = 0
    microbatches: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    spread: bool = False
    context: int = 1
    exchange: str = "ring"
    expert: int = 1

    def devices(self) -> int:
        return self.tensor * self.pipeline * self.shards * self.replicas

    def strides(self) -> tuple[int, int]:
        """From a device to the next stage's, and to the next shard's."""
        if self.spread:
            return self.devices() // self.pipeline, self.tensor
        return self.tensor, self.tensor * self.pipeline


class Cluster(NamedTuple):
    """Devices in nodes: the operations a second reached, and at most; a device's link, a node's."""

    speed: float
    peak: float
    inside: Link
    between: Link
    node: int = 8

    def ring(self, devices: int, stride: int, size: float, times: float) -> float:
        """The seconds of all-reduces of `size` bytes together between every `stride`-th device.

        Rings that leave a node share its link. A reduce-scatter or an all-gather takes half.
        """
        members = max(1, min(devices, self.node // stride))
        nodes = ceil(devices / members)
        latency = (devices - nodes) * self.inside.latency + (nodes - 1) * self.between.latency
        shared = self.between.per_byte * (self.node // members) if nodes > 1 else 0.0
        per_byte = max(self.inside.per_byte, shared) * (devices - 1) / devices
        return 2 * (times * latency + size * per_byte)

    def all_to_all(self, devices: int, stride: int, size: float, times: int) -> float:
        """The seconds in which every `stride`-th device sends `size` bytes in all to the others.

        Its parts are equal. All devices of a node share its link.
        """
        members = max(1, min(devices, self.node // stride))
        others = devices - members
        latency = (members - 1) * self.inside.latency + others * self.between.latency
        shared = others / (devices - 1) * self.node * self.between.per_byte
        return times * latency + size * max(self.inside.per_byte, shared)

    def hop(self, devices: int, stride: int) -> Link:
        """A device's link to the device at this distance, of so many in a line."""
        if devices * stride <= self.node:
            return self.inside
        sharing = min(self.node, stride)
        return self.between._replace(per_byte=sharing * self.between.per_byte)


def stages(
    net: Net, how: Degrees, examples: int, sizes: tuple[int, int]
) -> Iterator[tuple[dict[str, float], float, float]]:
    """Of a device of each stage of blocks: peak bytes by kind, at one time; microbatches in flight.

    `sizes` are the bytes of an element and of its optimizer state. A stage's first backward pass
    begins without gradients. They grow as activations are freed. ZB-H1 keeps them, and the
    logits' gradient, for the weights' half. Interleaved stages have chunks of more microbatches
    in flight, as in Megatron-LM.
    """
    item, state = sizes
    tokens = examples / how.shards / how.replicas / how.microbatches
    for stage, layers in enumerate(net.cut(how.pipeline)):
        after = how.pipeline - stage
        late = min(stage, how.microbatches - 1) if how.schedule == "zb1" else 0
        most: float = IN_FLIGHT[how.schedule](after, how.microbatches) + late
        if how.chunks > 1:
            most = (2 * after - 1 + (how.chunks - 1) * how.pipeline) / how.chunks
        live = min(how.microbatches, most)
        size = sum(map(net.size, layers)) / how.tensor
        shard, largest = size / how.shards, max(map(net.size, layers)) / how.tensor
        kept, again = net.kept(layers, how.tensor)
        logits = late * sum(net.output(x) for x in layers if x == "head") / how.tensor
        peak = {
            "weights": item * (shard + largest if how.zero == 3 else size),
            "gradients": item * (size, size + shard, shard + largest, shard + largest)[how.zero],
            "momentum": state * (shard if how.zero else size),
            "activations": item * tokens * (kept * live + again + logits),
        }
        later = peak["activations"] * (live - (live == how.microbatches)) / live
        changing = max(peak["activations"], peak["gradients"] + later)
        yield peak, peak["weights"] + peak["momentum"] + changing, live


@dataclass(frozen=True)
class Seconds:
    """A step: its parts, the longest first, and the messages `hidden` behind computation.

    `used` is the share of the peak without recomputation: the model FLOPs utilization.
    """

    step: float
    parts: dict[str, float]
    hidden: float
    used: float


def predict(net: Net, how: Degrees, examples: int, cluster: Cluster, itemsize: int = 2) -> Seconds:
    """Predicts a step on `examples`, of elements of `itemsize` bytes.

    Tensor parallelism's all-reduces overlap with nothing; sequence parallelism makes each a
    reduce-scatter and an all-gather, as many bytes. Replicated layers take as long as without it.
    Messages of a pipeline overlap with passes, unless it fills or drains. Of these,
    tensor-parallel devices send a slice each (Narayanan et al., 2021, section 4.1).
    """
    group = ceil(examples / how.shards / how.replicas)
    how = how._replace(microbatches=min(how.microbatches, group))
    work = [sum(map(net.work, stage)) for stage in net.cut(how.pipeline)]
    share = max(work) / sum(work)
    model, again = net.operations()
    again += round(6 * net.empty(group))
    whole = net.replicated_operations() if how.tensor > 1 else 0
    operations = whole + (model + again - whole) / how.tensor
    compute = group * operations * share / cluster.speed
    size = group * itemsize * sum(elements for _, elements in net.allreduces) * share
    times = how.microbatches * len(net.allreduces) * share
    tensor = cluster.ring(how.tensor, 1, size, times)

    waits = (how.pipeline - 1) * (how.microbatches if how.schedule == "naive" else 1)
    forward = compute * model / 3 / (model + again)
    bubble = waits * (compute + tensor) / how.microbatches / how.chunks
    if how.schedule == "zb1":  # halves of weights, as long as forward passes, fill it
        filled = how.pipeline + min(how.pipeline, how.microbatches) - 2
        bubble -= filled * forward / how.microbatches
    link = cluster.hop(how.pipeline, how.strides()[0])
    cut = group * itemsize * max(net.inputs[unit[0]] for unit in (net.units[-1], *net.units[1:]))
    message = link.latency + cut / how.microbatches / how.tensor * link.per_byte
    sent = 2 * how.microbatches * how.chunks * message if how.pipeline > 1 else 0.0
    pipeline = max(2 * waits * message, sent - compute)

    data, moved = _data(net, how, itemsize, cluster, compute, compute - forward)
    parts = {"compute": compute, "bubble": bubble, "tensor": tensor}
    around, met = _context(net, how, group * itemsize, cluster, compute * 3 / (model + again))
    parts |= {"pipeline": pipeline, "data": data, "context": around}
    parts["expert"] = _expert(net, how, group, itemsize, cluster)
    step = sum(parts.values())
    used = examples * model / (how.devices() * cluster.peak * step)
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return Seconds(step, parts, max(0.0, sent - pipeline) + moved + met, used)


def _data(
    net: Net, how: Degrees, itemsize: int, cluster: Cluster, compute: float, backward: float
) -> tuple[float, float]:
    """The seconds of messages of data parallelism: exposed, and hidden.

    Sums over replicas, and ZeRO-1's over shards, overlap with the backward pass of the last
    microbatch, where gradients are complete; ZeRO-2's with those of all, ZeRO-3's and its
    gathered weights with all passes. Exposed are the last unit's gradients, the first one's
    weights, and those gathered after ZeRO-1's and ZeRO-2's update. An expert's gradient is summed
    over those replicas that have it.
    """
    many, stride = how.microbatches, how.strides()[1]
    experts = itemsize * sum(prod(net.shapes[name]) for name in net.of_experts)
    size = (sum(map(net.size, net.layers)) * itemsize - experts) / how.tensor / how.pipeline
    units = len(net.units) / how.pipeline
    half = cluster.ring(how.shards, stride, size, units) / 2
    whole = cluster.ring(how.replicas, stride * how.shards, size / how.shards, units)
    same = how.replicas // how.expert, stride * how.expert
    whole += cluster.ring(*same, experts / how.expert, len(net.mixtures))
    first = (0.0, half, half, half / units)[how.zero]
    last = (0, 1, 1, 2)[how.zero] * half + whole
    others = (0, 0, many - 1, 3 * many - 2)[how.zero] * half
    window = backward / many
    during = (0.0, 0.0, backward, compute)[how.zero] - window
    exposed = max((half + whole) / units, last - window) + max(0.0, others - max(0.0, during))
    return first + exposed, last + others - exposed


def _context(
    net: Net, how: Degrees, size: int, cluster: Cluster, second: float
) -> tuple[float, float]:
    """The seconds of the messages of context parallelism: exposed, and hidden.

    A device has `size` bytes for each number of a token's state. Only a ring's messages overlap
    with computation: of scores, each multiplication of which takes a `second` for each token.
    """
    c, blocks = how.context, net.blocks
    if c == 1:
        return 0.0, 0.0
    stride = how.strides()[1] * how.shards
    state, times = size * blocks.hidden * blocks.count, how.microbatches * blocks.count
    keys, link = 2 * state / blocks.queries_per_key, cluster.hop(c, stride)
    if how.exchange == "gather":  # forward, backward, and their gradients
        return 1.5 * cluster.ring(c, stride, c * keys, times), 0.0
    if how.exchange == "ulysses":
        sent = 2 * (2 * state + keys) * (c - 1) / c
        return cluster.all_to_all(c, stride, sent, 8 * times), 0.0
    hops = 3 * c - 2
    sent = hops * (times * link.latency + keys * link.per_byte)
    scores = 2 * net.positions[net.layers[0]] * blocks.count * blocks.hidden * blocks.sequence
    exposed = max(0.0, sent - scores * second)
    return exposed, sent - exposed


def _expert(net: Net, how: Degrees, tokens: int, itemsize: int, cluster: Cluster) -> float:
    """The seconds in which tokens go to the devices of their experts and back, in both passes."""
    if how.expert == 1 or not net.experts:
        return 0.0
    others, times = (how.expert - 1) / how.expert * net.experts.count, 4 * len(net.mixtures)
    sent = others * net.experts.slots(tokens) * net.blocks.hidden * itemsize
    return cluster.all_to_all(how.expert, how.strides()[1], times * sent, times)
