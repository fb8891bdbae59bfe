"""Predicted seconds and bytes beside published ones."""

from dataclasses import replace
from typing import Any

import pytest

from common.parallel.nets import Net, lenet, resnet18, transformer
from common.parallel.strategies import split
from common.scaling.cluster import Link, seconds
from common.scaling.scenario import Scenario
from common.scaling.steps import LINKS, Cluster, Degrees, predict

MEGATRON = {
    1.7: (24, 24, 2304, 32, 1, 1, 16, 512, 1, 137, 0.80),
    3.6: (30, 32, 3072, 64, 2, 1, 16, 512, 1, 138, 0.85),
    7.5: (36, 32, 4096, 128, 4, 1, 16, 512, 1, 142, 0.93),
    18.4: (40, 48, 6144, 256, 8, 1, 8, 1024, 1, 135, 0.94),
    39.1: (48, 64, 8192, 512, 8, 2, 4, 1536, 1, 138, 1.02),
    76.1: (60, 80, 10240, 1024, 8, 4, 2, 1792, 3, 140, 0.97),
    145.6: (80, 96, 12288, 1536, 8, 8, 2, 2304, 2, 148, 1.05),
    310.1: (96, 128, 16384, 1920, 8, 16, 1, 2160, 2, 155, 1.07),
    529.6: (105, 128, 20480, 2520, 8, 35, 1, 2520, 3, 163, 1.13),
    1008.0: (128, 160, 25600, 3072, 8, 64, 1, 3072, 1, 163, 1.21),
}
"""Table 1 of Narayanan et al. (2021), by billions of parameters.

Layers, heads, hidden size, GPUs, tensor and pipeline degree, sequences of a microbatch and of
a minibatch, chunks of a stage (both from `examples/sc21/run_table_1.sh` of Megatron-LM),
achieved teraFLOP/s, and our seconds divided by the published ones. The smallest nets have
matrix products that reach a smaller share of the peak, the largest ones a larger one.
"""


def gpt(layers: int, heads: int, hidden: int, sequences: int, **how: Any) -> Scenario:
    """A plan on nodes of 8 A100, each with a port of InfiniBand."""
    how |= {"layers": layers, "heads": heads, "hidden": hidden, "vocabulary": 51_200}
    how |= {"net": "transformer", "attention": "scores", "precision": "mixed", "card": "a100"}
    return Scenario(examples=sequences * 2048, **how)


@pytest.mark.parametrize("billions", MEGATRON)
def test_seconds_are_near_those_of_megatron(billions: float) -> None:
    layers, heads, h, gpus, t, p, small, batch, chunks, achieved, ratio = MEGATRON[billions]
    replicas, s = gpus // t // p, 2048
    how = {"tensor": t, "pipeline": p, "replicas": replicas, "devices": gpus, "chunks": chunks}
    how["microbatches"] = batch // replicas // small
    # Matrix products reach 55 % of the peak, the same for all nets of the paper.
    plan = gpt(layers, heads, h, batch, recompute="full", peak_share=0.55, **how)
    net = plan.network()
    elements = sum(map(net.size, net.layers)) - net.size("head")  # theirs are the embeddings
    assert elements / 1e9 == pytest.approx(billions, rel=0.03)
    theirs = 96 * s * layers * h**2 * (1 + s / (6 * h) + 51_200 / (16 * layers * h))
    assert sum(net.operations()) * s == pytest.approx(theirs, rel=1e-12)
    published = batch * theirs / (gpus * achieved * 1e12)
    assert plan.seconds().step / published == pytest.approx(ratio, abs=0.01)


KORTHIKANTI = {
    "22B": (48, 64, 6144, 8, 1, 1, 4, 1.42, 1.10, 0.87, 0.84),
    "175B": (96, 96, 12288, 64, 8, 3, 64, 18.13, 13.75, 1.03, 1.02),
    "530B": (105, 128, 20480, 280, 35, 3, 280, 49.05, 37.83, 1.14, 1.11),
    "1T": (128, 160, 25600, 512, 64, 1, 512, 94.42, 71.49, 1.21, 1.20),
}
"""Tables 3 and 5 of Korthikanti et al. (2022): as above, with the seconds of an iteration.

They are those of full recomputation, and of selective recomputation with sequence parallelism,
which sends as much as tensor parallelism does; then ours divided by both.
"""


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_seconds_with_recomputation_are_near_those_of_korthikanti(name: str) -> None:
    layers, heads, h, gpus, p, chunks, batch, *times = KORTHIKANTI[name]
    how: Any = {"tensor": 8, "pipeline": p, "replicas": gpus // 8 // p}
    how |= {"microbatches": 1 if name == "22B" else batch, "chunks": chunks, "peak_share": 0.6}
    for again, published, ratio in zip(("full", "selective"), times[:2], times[2:], strict=True):
        found = gpt(int(layers), int(heads), int(h), int(batch), recompute=again, **how).seconds()
        assert found.step / published == pytest.approx(ratio, abs=0.01)


@pytest.mark.parametrize("t", [1, 2, 8])
def test_activations_are_those_of_korthikanti(t: int) -> None:
    a, s, h = 96, 2048, 12288
    scores = 5 * a * s / h / t
    whole = 34 / t + scores
    for recompute, factor in (("none", whole), ("selective", whole - scores), ("full", 2 / t)):
        net = transformer(0, 96, h, a, sequence=s, recompute=recompute, attention="scores")
        recomputed = {"none": 0, "selective": scores, "full": whole}[recompute]
        found = net.kept(net.layers, t)
        assert found == pytest.approx((48 * h * factor, h / 2 * recomputed))


@pytest.mark.parametrize("recompute", ["none", "selective", "full", "layers"])
def test_a_net_is_the_same_by_token_and_by_sequence(recompute: str) -> None:
    how: Any = {"sequence": 9, "vocabulary": 13, "recompute": recompute, "attention": "scores"}
    token, sequence = (transformer(0, 2, 46, 2, tokens, **how) for tokens in (1, 9))
    assert token.shapes == sequence.shapes
    assert sequence.kept(sequence.layers) == tuple(9 * x for x in token.kept(token.layers))
    assert sequence.operations() == tuple(9 * x for x in token.operations())
    assert sequence.allreduces == [(kind, 9 * elements) for kind, elements in token.allreduces]


def test_a_pipeline_recomputes_one_microbatch_of_those_in_flight() -> None:
    net = transformer(0, 3, 8, 2, sequence=5, recompute="full", attention="scores")
    plan = split(net, "pipeline", 3, microbatches=4)
    kept, recomputed = 8, 17 * 8 + 5 * 2 * 5 // 2
    for device, in_flight in enumerate((3 + 3 + 2, 3 + 3, 3)):
        activations = plan.memory(10, device, 2, 12)["activations"]
        assert activations == 2 * (in_flight * kept + 3 * recomputed)


@pytest.mark.parametrize(
    ("strategy", "published", "ratio"),
    [("data", 120, 1.00), ("zero1", 31.4, 1.01), ("zero2", 16.6, 1.00), ("zero3", 1.9, 0.99)],
)
def test_bytes_are_near_those_of_zero(strategy: str, published: float, ratio: float) -> None:
    # Figure 1 of Rajbhandari et al. (2020): 7.5 billion parameters on 64 devices. They leave out
    # the largest layer, which ZeRO-3 gathers, and its gradient, which ZeRO-2 has whole, too.
    net = transformer(7_500_000_000, 36)
    kept = split(net, strategy, 64).memory(64, 0, 2, 12)
    whole = {"zero2": 1, "zero3": 2}.get(strategy, 0) * 2 * max(map(net.size, net.layers))
    states = sum(kept.values()) - kept["activations"] - whole
    assert states / 1e9 / published == pytest.approx(ratio, abs=0.005)


def test_days_are_those_of_the_scaling_book() -> None:
    # 44 days for 70 billion parameters and 15 trillion tokens on 8,960 TPU v5p at 40 % of the peak,
    # at 6 operations a parameter and token: attention is left out.
    net = transformer(70_000_000_000, 80, sequence=0)
    tokens, peak = 4 * 2**20, 459e12
    link = Link(0, 0, 0)
    found = predict(net, Degrees(replicas=8960), tokens, Cluster(0.4 * peak, peak, link, link))
    assert 15e12 / tokens * found.step / 86_400 == pytest.approx(44, rel=0.02)
    assert found.used == pytest.approx(0.4, rel=0.002)


@pytest.mark.parametrize("net", [lenet(0), lenet(1), resnet18(8)])
def test_replicated_weights_take_as_long_as_on_one_device(net: Net) -> None:
    plan = split(net, "tensor", 4)
    sizes, tensors = plan.sizes_of(plan.weights, 0), plan.tensors
    operations = 0
    for layer in plan.layers:
        local = sum(sizes[name] for name in tensors[layer] if len(plan.shapes[name]) > 1)
        operations += (4 if layer == plan.layers[0] else 6) * plan.positions[layer] * local
    link = Link(1, 1, 0)
    found = predict(plan, Degrees(tensor=4), 10, Cluster(7, 9, link, link))
    assert found.parts["compute"] == pytest.approx(10 * operations / 7)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_a_ring_takes_what_its_schedule_takes(k: int) -> None:
    link = LINKS["nvlink"]
    ring = Cluster(1, 1, link, Link(1, 1, 1)).ring(k, 1, 4 * 24 * k, 1)
    assert ring == pytest.approx(seconds("ring", k, 24 * k, link))


def test_what_leaves_a_node_is_as_slow_as_its_links() -> None:
    far = Cluster(1, 1, Link(1, 0.001, 0), Link(100, 1, 0), 8)
    assert far.ring(8, 1, 80, 1) == pytest.approx(2 * (7 + 80 * 0.001 * 7 / 8))
    # Three nodes: in the ring are 2 slow links. Eight rings share the link of a node.
    assert far.ring(24, 1, 240, 1) == pytest.approx(2 * (21 + 2 * 100 + 240 * 23 / 24))
    assert far.ring(3, 8, 240, 1) == pytest.approx(2 * (2 * 100 + 8 * 240 * 2 / 3))
    assert far.hop(8, 1) == far.inside
    assert [far.hop(16, stride).per_byte for stride in (1, 2, 8, 32)] == [1, 2, 8, 8]


def test_stages_are_inside_a_node_or_outermost() -> None:
    how = Degrees(tensor=2, pipeline=4, shards=4, replicas=8)
    assert how.devices() == 256
    assert how.strides() == (2, 8)
    assert how._replace(spread=True).strides() == (64, 2)


@pytest.mark.parametrize(
    ("compute", "how", "exposed", "hidden"),
    [
        # Backward passes take 4 s, the last of them 2 s; a reduce-scatter takes 1 s, a quarter of
        # it for each of 4 blocks.
        (6, Degrees(replicas=4, microbatches=2), {"data": 0.5}, 1.5),
        (6, Degrees(shards=4, zero=1, microbatches=2), {"data": 1.25}, 0.75),
        (6, Degrees(shards=4, zero=2, microbatches=2), {"data": 1.25}, 1.75),
        (6, Degrees(shards=4, zero=3, microbatches=2), {"data": 0.5}, 5.75),
        (3, Degrees(replicas=4, microbatches=2), {"data": 1}, 1),
        (3, Degrees(shards=4, zero=3, microbatches=2), {"data": 3.25}, 3),
        # Two shards take 2/3 s, and their two replicas sum half as much as all: 2/3 s, which only
        # the last backward pass hides, of 1 s.
        (3, Degrees(shards=2, replicas=2, zero=2, microbatches=2), {"data": 1}, 5 / 3),
        # A pass takes 2 s, both ways, and its message 1 s.
        (6, Degrees(pipeline=4, microbatches=3), {"bubble": 6, "pipeline": 6}, 0),
        (6, Degrees(pipeline=2, microbatches=3), {"bubble": 2, "pipeline": 2}, 4),
        # ZB-H1's thirds take 2/3 s: F + B - W for each further stage, W if a microbatch lacks.
        (
            6,
            Degrees(pipeline=2, microbatches=3, schedule="zb1"),
            {"bubble": 2 / 3, "pipeline": 2},
            4,
        ),
        (
            6,
            Degrees(pipeline=4, microbatches=3, schedule="zb1"),
            {"bubble": 8 / 3, "pipeline": 6},
            0,
        ),
        (6, Degrees(pipeline=2, microbatches=3, chunks=2), {"bubble": 1, "pipeline": 6}, 6),
        (3, Degrees(pipeline=2, microbatches=3), {"bubble": 1, "pipeline": 3}, 3),
        (6, Degrees(pipeline=2, microbatches=3, schedule="naive"), {"bubble": 6, "pipeline": 6}, 0),
    ],
)
def test_messages_overlap_as_far_as_they_can(
    compute: float, how: Degrees, exposed: dict[str, float], hidden: float
) -> None:
    net, examples = transformer(0, 4, 8, 8, sequence=2), 36
    size = 2 * sum(map(net.size, net.layers))
    link = Link(0, 4 / 3 / size, 0) if how.pipeline == 1 else Link(0, 3 / (2 * 8 * examples), 0)
    share = compute * how.pipeline * how.shards * how.replicas
    speed = sum(net.operations()) * examples / share
    found = predict(net, how, examples, Cluster(speed, speed, link, link))
    parts = {name: time for name, time in found.parts.items() if time}
    assert parts == pytest.approx({"compute": compute, **exposed})
    assert found.hidden == pytest.approx(hidden)


def test_tokens_go_to_experts_and_back_in_both_passes() -> None:
    how: dict[str, Any] = {"net": "transformer", "layers": 4, "hidden": 64, "heads": 4}
    how |= {"sequence": 100, "experts": 6, "devices": 4, "replicas": 2, "examples": 400}
    plan = Scenario(strategy="expert", card="a100", precision="mixed", **how)
    slots, link = 42, LINKS["nvlink"]  # of 100 tokens' 200 choices, 1.25 times an equal share
    sent = 3 * slots * 64 * 2  # to the three experts of the other device of a group
    once = link.latency + sent * link.per_byte
    assert plan.seconds().parts["expert"] == pytest.approx(2 * 4 * once)
    apart = replace(plan, devices=8, replicas=1, examples=800, node=4, between="ethernet")
    slots_of_all = 7 / 8 * 6 * slots * 64 * 2  # 4 of 7 devices are in the other node
    link = LINKS["ethernet"]
    latency = 3 * LINKS["nvlink"].latency + 4 * link.latency
    once = latency + slots_of_all * 4 / 7 * 4 * link.per_byte
    assert apart.seconds().parts["expert"] == pytest.approx(2 * 4 * once)
    many = replace(plan, capacity=0)  # each of 6 experts computes all tokens, not a third
    assert many.seconds().parts["compute"] > 1.4 * plan.seconds().parts["compute"]
    everything, alone = plan.usage(), Scenario(precision="mixed", **how).usage()
    own = 3 * (2 * 64 * 128 + 128 + 64)  # numbers of the experts of a device, in a layer
    assert alone.peak["weights"][0] - everything.peak["weights"][0] == 2 * 2 * own
    loads = 2 * 6 * 2  # of each layer, in bytes, to the first of its row, and of its column
    assert everything.sent["activations"][3] == 2 * 2 * sent + 2 * loads
    full = Scenario(strategy="expert", precision="mixed", recompute="full", **how).usage()
    assert full.peak["activations"][0] < everything.peak["activations"][0]
