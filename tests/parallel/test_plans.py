"""Plans: who has which part of which weight, and what a step sends and keeps."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions
from common.models.nets import resnet18_shapes, trainable
from common.parallel.nets import resnet18, transformer
from common.parallel.strategies import OF_ANY_NET, refusal, split
from common.trainers.strategies import require_parts

P = 129_068
OPTIONS = {name: StrategiesOptions(name, microbatches=1) for name in OF_ANY_NET}


def total(by_kind: Mapping[str, Sequence[int]]) -> int:
    return sum(map(sum, by_kind.values()))


def test_a_device_that_keeps_more_than_its_part_is_an_error() -> None:
    plan = OPTIONS["zero3"].plan(2)
    require_parts(plan, [P // 2, P // 2])
    with pytest.raises(RunError, match="keeps 129,068 of 129,068 weights, by the plan of zero3"):
        require_parts(plan, [P // 2, P])


def sent(name: str, k: int, n: int, **changes: int) -> tuple[int, int]:
    """The numbers that all devices send, and their messages."""
    options = StrategiesOptions(name, **{"microbatches": 1} | changes)  # type: ignore[arg-type]
    found = options.usage(k, n, 1)
    assert total(found.sent) == total(found.received)
    return total(found.sent), sum(found.messages)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_what_is_sent_is_what_the_literature_says(k: int) -> None:
    n = 11
    assert sent("data", k, n) == (2 * (k - 1) * P, 2 * (k - 1) * 8)
    assert sent("zero1", k, n)[0] == sent("zero2", k, n)[0] == 2 * (k - 1) * P
    assert sent("zero3", k, n)[0] == 3 * (k - 1) * P
    assert sent("tensor", k, n)[0] == 2 * (k - 1) * n * (4050 + 10 + 800)
    assert sent("tensor", k, n, microbatches=4)[0] == 2 * (k - 1) * n * (4050 + 10 + 800)
    plan = OPTIONS["pipeline"].plan(k)
    cuts = sum(plan.inputs[names[0]] for names in plan.stages[1:])
    for m in (1, 4):
        assert sent("pipeline", k, n, microbatches=m) == (2 * n * cuts, 2 * (k - 1) * m)
    mesh = 2 * (k - 1) * n * 4860 + 2 * (P + 60 * (k - 1))
    assert sent("tensor", 2 * k, n, replicas=2)[0] == mesh


def memory(name: str, k: int) -> int:
    """The most numbers that the first device keeps."""
    peak = OPTIONS[name].usage(k, 16, 1).peak
    return sum(peak[kind][0] for kind in ("weights", "gradients", "momentum"))


def test_memory_falls_as_the_literature_says() -> None:
    largest = 800 * 128 + 128  # a layer's gradient, or its weights
    for k in (2, 4):
        share = math.ceil(P / k) + 8
        assert memory("data", k) == 3 * P
        assert 2 * P + P / k < memory("zero1", k) < 2 * P + 2 * share
        assert P + 2 * P / k < memory("zero2", k) <= P + 2 * share + largest
        assert 3 * P / k < memory("zero3", k) <= 3 * share + 2 * largest
        assert memory("tensor", k) <= 3 * share + 3 * 60


def test_the_gradients_of_outputs_wait_for_the_weights_half() -> None:
    net = transformer(0, 2, 8, 8, sequence=2, vocabulary=100)
    pipeline = split(net, "pipeline", 4, microbatches=4, schedule="zb1")
    sizes = [pipeline.elements_updated(device) for device in range(4)]
    # Of a transformer, 17 h elements that a block keeps become 16 h. At the head, gradients of
    # weights meet those of the logits of 3 microbatches of 2 tokens.
    gradients = [pipeline.gradients_kept(device, 8) for device in range(4)]
    assert gradients == [*sizes[:3], sizes[3] + 3 * 2 * 100]
    # Of LeNet's last layer but one and last one: 4 microbatches of 3 examples.
    lenet: Any = StrategiesOptions("pipeline", microbatches=4, schedule="zb1").plan(4)
    assert [lenet.outputs_kept(device) for device in range(4)] == [20 * 13 * 13, 800, 128, 10]
    assert lenet.gradients_kept(3, 12) == 128 * 10 + 10 + 3 * 3 * 10


@pytest.mark.parametrize("width", [1, 8, 64])
def test_resnet18s_plan_has_the_shapes_that_are_trained(width: int) -> None:
    plan: Any = split(resnet18(width), "tensor", 1)
    trained = [shape for name, shape in resnet18_shapes(width).items() if trainable(name)]
    assert sorted(plan.shapes.values()) == sorted(trained)
    assert [name for layer in plan.layers for name in plan.tensors[layer]] == list(plan.shapes)
    assert [layer for unit in plan.units for layer in unit] == plan.layers
    assert plan.unpaired == ["conv1", "fc"]


@pytest.mark.parametrize(
    ("options", "devices", "told"),
    [
        (StrategiesOptions("zero1", replicas=3), 4, "a multiple of 3 devices, not 4"),
        (StrategiesOptions("tensor"), 21, "21 devices cannot share the 20 channels"),
        (StrategiesOptions("pipeline", stages=(2, 1)), 2, "--stages needs 2 numbers"),
        (StrategiesOptions("data", replicas=2), 4, "--replicas is for the others"),
    ],
)
def test_what_devices_cannot_do_is_refused(
    options: StrategiesOptions, devices: int, told: str
) -> None:
    assert told in options.refusal(devices)
    assert not StrategiesOptions("pipeline", depth=4).refusal(8)
    assert "the net can be cut into 10" in refusal(resnet18(8), "pipeline", 11)
    assert "2 devices cannot share the 1 channels" in refusal(resnet18(1), "tensor", 2)
    assert "the 3 heads of a block do not divide over 2" in refusal(
        transformer(100, 1, heads=3), "tensor", 2
    )
