"""Scenarios: plans of all nets, and what a step of them takes."""

import math
from dataclasses import replace

import pytest

from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.models.nets import resnet18_shapes, trainable
from common.parallel.scenarios import Scenario


def numbers(scenario: Scenario) -> int:
    return sum(map(math.prod, scenario.plan().shapes.values()))


@pytest.mark.parametrize("width", [1, 8, 64])
def test_resnet18s_plan_has_the_shapes_that_are_trained(width: int) -> None:
    plan = Scenario("resnet18", width=width).plan()
    trained = [shape for name, shape in resnet18_shapes(width).items() if trainable(name)]
    assert sorted(plan.shapes.values()) == sorted(trained)
    assert [name for layer in plan.layers for name in plan.tensors[layer]] == list(plan.shapes)
    assert [layer for unit in plan.units for layer in unit] == plan.layers
    assert plan.unpaired == ["conv1", "fc"]
    assert width != 64 or numbers(Scenario("resnet18")) == 11_175_818


@pytest.mark.parametrize(("millions", "layers"), [(1, 1), (7, 100), (1_000_000, 24)])
def test_dense_layers_have_about_the_parameters_asked_for(millions: int, layers: int) -> None:
    found = numbers(Scenario("dense", parameters=millions * 10**6, layers=layers))
    assert found == pytest.approx(millions * 10**6, rel=0.01)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("devices", "replicas", "depth"), [(1, 1, 0), (3, 1, 2), (6, 2, 4)])
def test_a_scenario_of_lenet_takes_what_a_run_takes(
    strategy: str, devices: int, replicas: int, depth: int
) -> None:
    alike = {"strategy": strategy, "replicas": replicas, "depth": depth, "microbatches": 3}
    scenario = Scenario(devices=devices, examples=101, **alike)  # type: ignore[arg-type]
    options = StrategiesOptions(**alike)  # type: ignore[arg-type]
    assert scenario.usage() == options.usage(devices, 101, 4)


@pytest.mark.parametrize(
    ("precision", "optimizer", "item", "state"),
    [("float32", "sgd", 4, 0), ("float64", "momentum", 8, 8), ("mixed", "adam", 2, 4 + 2 * 4)],
)
def test_precision_and_optimizer_decide_the_bytes_of_an_element(
    precision: str, optimizer: str, item: int, state: int
) -> None:
    peak = Scenario(precision=precision, optimizer=optimizer).usage().peak
    assert peak["weights"][0] == peak["gradients"][0] == item * 129_068
    assert peak["momentum"][0] == state * 129_068


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (Scenario(strategy="zero1", devices=4, replicas=3), "a multiple of 3 devices, not 4"),
        (Scenario("resnet18", strategy="pipeline", devices=11), "the net can be cut into 10"),
        (Scenario(strategy="tensor", devices=21), "21 devices cannot share the 20 channels"),
        (Scenario("dense", layers=1, strategy="tensor", devices=2), "share the 0 channels"),
    ],
)
def test_an_impossible_split_is_refused_and_the_next_one_is_not(
    scenario: Scenario, why: str
) -> None:
    assert why in scenario.refusal()
    possible = replace(scenario, devices=scenario.devices - 1)
    assert possible.refusal() == ""
    assert len(possible.usage().live) == possible.devices
