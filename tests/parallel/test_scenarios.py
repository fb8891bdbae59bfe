"""Scenarios: plans of all nets, and what a step of them takes."""

import math

import pytest

from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.models.nets import resnet18_shapes, trainable
from common.parallel.scenarios import OPTIMIZERS, PRECISIONS, Scenario


def numbers(scenario: Scenario) -> int:
    return sum(map(math.prod, scenario.plan().shapes.values()))


def test_resnet18_has_as_many_numbers_as_the_books() -> None:
    assert numbers(Scenario("resnet18")) == 11_175_818


@pytest.mark.parametrize("width", [1, 8, 64])
def test_resnet18s_plan_has_the_shapes_that_are_trained(width: int) -> None:
    plan = Scenario("resnet18", width=width).plan()
    trained = [shape for name, shape in resnet18_shapes(width).items() if trainable(name)]
    assert sorted(plan.shapes.values()) == sorted(trained)
    assert [name for layer in plan.layers for name in plan.tensors[layer]] == list(plan.shapes)
    assert [layer for unit in plan.units for layer in unit] == plan.layers
    assert plan.unpaired == ["conv1", "fc"]


@pytest.mark.parametrize("millions", [1, 7, 1_000, 1_000_000])
@pytest.mark.parametrize("layers", [1, 24, 100])
def test_dense_layers_have_about_as_many_numbers_as_are_asked_for(
    millions: int, layers: int
) -> None:
    asked = millions * 10**6
    found = numbers(Scenario("dense", parameters=asked, layers=layers))
    assert found == pytest.approx(asked, rel=0.01)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("devices", "replicas", "depth"), [(1, 1, 0), (3, 1, 2), (6, 2, 4)])
def test_a_scenario_of_lenet_takes_what_a_run_takes(
    strategy: str, devices: int, replicas: int, depth: int
) -> None:
    scenario = Scenario(
        strategy=strategy,
        devices=devices,
        replicas=replicas,
        depth=depth,
        microbatches=3,
        examples=101,
    )
    options = StrategiesOptions(strategy, replicas=replicas, microbatches=3, depth=depth)
    assert scenario.usage() == options.usage(devices, 101, 4)


def test_precision_and_optimizer_decide_what_a_number_takes() -> None:
    weights = {
        (precision, optimizer): {
            kind: each[0]
            for kind, each in Scenario(precision=precision, optimizer=optimizer)
            .usage()
            .peak.items()
        }
        for precision in PRECISIONS
        for optimizer in OPTIMIZERS
    }
    count = 129_068
    for (precision, optimizer), peak in weights.items():
        item = {"float32": 4, "float64": 8, "mixed": 2}[precision]
        state = {"float32": 4, "float64": 8, "mixed": 4}[precision]
        states = {"sgd": 0, "momentum": 1, "adam": 2}[optimizer]
        master = 4 if precision == "mixed" else 0
        assert peak["weights"] == peak["gradients"] == item * count
        assert peak["momentum"] == (states * state + master) * count


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (
            Scenario(strategy="zero1", devices=4, replicas=3),
            "take a multiple of 3 devices, not 4",
        ),
        (
            Scenario(strategy="pipeline", devices=5),
            "the net can be cut into 4",
        ),
        (Scenario("resnet18", strategy="pipeline", devices=11), "the net can be cut into 10"),
        (Scenario(strategy="tensor", devices=21), "21 devices cannot share the 20 channels"),
        (
            Scenario("resnet18", width=3, strategy="tensor", devices=4),
            "share the 3 channels",
        ),
        (
            Scenario("dense", layers=1, strategy="tensor", devices=2),
            "share the 0 channels",
        ),
    ],
)
def test_what_cannot_be_split_so_is_refused(scenario: Scenario, why: str) -> None:
    assert why in scenario.refusal()


def test_what_is_next_to_a_refusal_can_be_split() -> None:
    for scenario in (
        Scenario(strategy="zero1", devices=6, replicas=3),
        Scenario(strategy="pipeline", devices=4),
        Scenario(strategy="pipeline", devices=8, replicas=2),
        Scenario("resnet18", strategy="pipeline", devices=10),
        Scenario(strategy="tensor", devices=20),
        Scenario("dense", layers=2, strategy="tensor", devices=64),
        Scenario(devices=4, replicas=3),  # data parallelism has a replica on each device
    ):
        assert scenario.refusal() == ""
        assert len(scenario.usage().live) == scenario.devices
