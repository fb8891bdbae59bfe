"""Predicts the seconds of a training step, split by tensor, pipeline and data parallelism.

Counted bytes are those of a star, seconds those of rings. Updates and reading data are free.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from common.parallel.nets import Net
from common.parallel.plans import Plan
from common.scaling.cluster import Link

CARDS: Final = {
    "a100": {"mixed": 312e12, "float32": 156e12, "float64": 19.5e12, "memory": 80e9},
    "h100": {"mixed": 989e12, "float32": 495e12, "float64": 67e12, "memory": 80e9},
    "rtx4090": {"mixed": 165e12, "float32": 82.6e12, "float64": 1.3e12, "memory": 24e9},
}
"""Dense peak operations a second (float32: TF32) and bytes of memory, from data sheets."""

LINKS: Final = {
    "nvlink": Link(3.4e-6, 1 / 235e9, 0),
    "nvlink4": Link(3.4e-6, 1 / 370e9, 0),
    "pcie": Link(5.7e-6, 1 / 25e9, 0),
    "infiniband": Link(9.6e-6, 1 / 25e9, 0),
    "ethernet": Link(30e-6, 1 / 1.56e9, 0),
}
"""Seconds of a message, and of a byte each way, for each device.

Latencies and A100's `nvlink` are NCCL's (`src/graph/tuning.cc`, ring, protocol Simple); H100's
`nvlink4` and PCIe 4.0 reach about as much. InfiniBand has a port of 200 Gbit/s for each
device; of Ethernet, 8 devices share 100 Gbit/s, and TCP's latency is an assumption.
"""


class Degrees(NamedTuple):
    """How devices share a step: `tensor` is innermost, then `pipeline`, `shards`, `replicas`.

    Shards are those of ZeRO's stage `zero`. In an interleaved pipeline (Narayanan et al., 2021,
    section 2.2), a device has `chunks`.
    """

    tensor: int = 1
    pipeline: int = 1
    shards: int = 1
    replicas: int = 1
    zero: int = 0
    microbatches: int = 1
    schedule: str = "1f1b"
    chunks: int = 1


def degrees(plan: Plan) -> Degrees:
    zero = int(plan.strategy[-1]) if plan.sharded else 0
    names = "tensor", "pipeline", f"zero{zero}"
    t, p, shards = (plan.devices if plan.strategy == name else 1 for name in names)
    return Degrees(t, p, shards, plan.replicas, zero, plan.microbatches, plan.schedule)


class Cluster(NamedTuple):
    """Devices in nodes: the operations a second that each reaches, and at most; the links."""

    speed: float
    peak: float
    inside: Link
    between: Link
    node: int = 8

    def ring(self, devices: int, stride: int, size: float, times: float) -> float:
        """The seconds of all-reduces of `size` bytes together between every `stride`-th device.

        Rings that leave a node share its links. A reduce-scatter or an all-gather takes half.
        """
        members = max(1, min(devices, self.node // stride))
        nodes = ceil(devices / members)
        latency = (devices - nodes) * self.inside.latency + (nodes - 1) * self.between.latency
        shared = self.between.per_byte / members if nodes > 1 else 0.0
        per_byte = max(self.inside.per_byte, shared) * (devices - 1) / devices
        return 2 * (times * latency + size * per_byte)


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

    Tensor parallelism's all-reduces overlap with nothing, and replicated layers take as long as
    without it. Messages of a pipeline overlap with passes, unless it fills or drains. Of these,
    tensor-parallel devices send a slice each (section 4.1).
    """
    group = ceil(examples / how.shards / how.replicas)
    stages = net.cut(how.pipeline) if how.pipeline > 1 else [net.layers]
    work = [sum(map(net.work, stage)) for stage in stages]
    share = max(work) / sum(work)
    model, again = net.operations()
    whole = net.replicated_operations() if how.tensor > 1 else 0
    operations = whole + (model + again - whole) / how.tensor
    compute = group * operations * share / cluster.speed
    size = group * itemsize * sum(elements for _, elements in net.allreduces) * share
    times = how.microbatches * len(net.allreduces) * share
    tensor = cluster.ring(how.tensor, 1, size, times)

    waits = (how.pipeline - 1) * (how.microbatches if how.schedule == "naive" else 1)
    bubble = waits * (compute + tensor) / how.microbatches / how.chunks
    link = cluster.between if how.tensor * how.pipeline > cluster.node else cluster.inside
    cut = group * itemsize * max(net.inputs[unit[0]] for unit in (net.units[-1], *net.units[1:]))
    message = link.latency + cut / how.microbatches / how.tensor * link.per_byte
    sent = 2 * how.microbatches * how.chunks * message if how.pipeline > 1 else 0.0
    pipeline = max(2 * waits * message, sent - compute)

    backward = compute * (1 - model / 3 / (model + again))
    data, moved = _data(net, how, itemsize, cluster, compute, backward)
    parts = {"compute": compute, "bubble": bubble, "tensor": tensor}
    parts |= {"pipeline": pipeline, "data": data}
    step = sum(parts.values())
    devices = how.tensor * how.pipeline * how.shards * how.replicas
    used = examples * model / (devices * cluster.peak * step)
    parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
    return Seconds(step, parts, max(0.0, sent - pipeline) + moved, used)


def _data(
    net: Net, how: Degrees, itemsize: int, cluster: Cluster, compute: float, backward: float
) -> tuple[float, float]:
    """The seconds of messages of data parallelism: exposed, and hidden.

    Gradients overlap with the backward pass of the last microbatch, ZeRO-2's with those of
    all, ZeRO-3's and its gathered weights with all passes. Exposed are the last unit's
    gradients, the first one's weights, and those gathered after ZeRO-1's and ZeRO-2's update.
    """
    inner, many = how.tensor * how.pipeline, how.microbatches
    size = sum(map(net.size, net.layers)) * itemsize / inner
    units = len(net.units) / how.pipeline
    half = cluster.ring(how.shards, inner, size, units) / 2
    last = cluster.ring(how.replicas, inner * how.shards, size / how.shards, units)
    halves, first, window = (
        (0, 0.0, backward / many),
        (1, half, backward / many),
        (many, half, backward),
        (3 * many, half / units, compute),
    )[how.zero]
    messages = halves * half + last
    exposed = max((half + last) / units, messages - window)
    return first + exposed, messages - exposed
