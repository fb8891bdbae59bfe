"""Solutions of the exercises, and steps of cells, in the framework under test."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from scratch_steps import IMAGES, LABELS, LR, batches, far, start

from common.base.arrays import Array, Weights, on_host
from common.chapters.scratch import ScratchOptions
from common.compare import numpy_nets
from common.data.dataset import pixels
from notebooks.classroom.splits import take_steps
from notebooks.exercises import solutions

DATA = pixels(IMAGES[:40], "float64"), LABELS[:40].astype(np.int64)
OPTIONS = ScratchOptions()


def answers(X: Array, weights: Weights) -> Array:
    classes: Array = numpy_nets.logits("scratch", X, weights).argmax(axis=1)
    return classes


@pytest.mark.parametrize("k", [1, 3])
def test_training_once_is_as_in_numpy(scratch: Any, all_devices: Sequence[Any], k: int) -> None:
    held_out = batches(1, 40, "float64")[0]
    weights = start("float64")
    for i in range(0, 40, 15):
        X, y = (values[i : i + 15] for values in DATA)
        step = numpy_nets.step("scratch", X, y, weights, [(0, len(y))])
        weights = {name: w - LR * step.gradients[name] for name, w in weights.items()}
    run = partial(solutions.train_once, scratch, start("float64"), DATA, held_out)
    trial = run(all_devices[:k], 15, LR)
    assert trial[:3] == (k, 15, LR)
    np.testing.assert_allclose(trial.loss, step.loss, rtol=1e-12)
    assert trial.accuracy == (answers(held_out[0], weights) == held_out[1]).mean()
    assert trial.images_per_second > 0


@pytest.mark.parametrize(("k", "examples"), [(1, 40), (3, 40), (5, 3)])
def test_accuracy_is_that_of_all_answers(
    scratch: Any, all_devices: Sequence[Any], k: int, examples: int
) -> None:
    # A net that gives several answers.
    weights = {name: 8 * values for name, values in start("float64").items()}
    X, y = DATA[0][-examples:], DATA[1][-examples:]
    y = np.where(np.arange(examples) % 3 == 0, answers(X, weights), y)  # some are right
    devices, filled = all_devices[:k], all_devices[: min(k, examples)]
    scatter, on_each_device = scratch.kernels.scatter, scratch.kernels.on_each_device
    replicas = scratch.trainer(weights, filled, OPTIONS).replicas
    logits = on_each_device(scratch.listing.lenet, scatter(X, filled), replicas)

    def count_right(logits: Any, labels: Any) -> int:
        return int((on_host(logits).argmax(axis=1) == on_host(labels)).sum())

    accuracy = solutions.accuracy_of_shards(logits, scatter(y, devices), count_right)
    assert accuracy == (answers(X, weights) == y).mean()
    assert len(set(answers(DATA[0], weights))) > 1


@pytest.mark.parametrize("speeds", [[3, 1], [1, 0, 4]], ids=str)
def test_uneven_shards_keep_the_gradient(
    scratch: Any, all_devices: Sequence[Any], speeds: list[float]
) -> None:
    weights, (X, y) = start("float64"), batches(1, 35, "float64")[0]
    sizes, devices = solutions.weighted_shard_sizes(35, speeds), all_devices[: len(speeds)]
    grads = solutions.weighted_gradient(scratch, weights, (X, y), devices, sizes)
    right = numpy_nets.step("scratch", X, y, weights, [(0, len(y))]).gradients
    assert far(grads, right) < 1e-12


def test_cells_take_steps_on_devices(strategies: Any, all_devices: Sequence[Any]) -> None:
    minibatch = batches(1, 11, "float64")[0]
    single = take_steps(strategies, all_devices[:1], start("float64"), minibatch)
    for name, count, replicas in (("pipeline", 2, 1), ("tensor", 4, 2)):
        options: dict[str, Any] = {"strategy": name, "microbatches": 3, "replicas": replicas}
        steps = take_steps(strategies, all_devices[:count], start("float64"), minibatch, **options)
        assert steps.difference(single) < 1e-12
        assert steps.losses == pytest.approx(single.losses, rel=1e-12)
        assert steps.counted == steps.predicted
    assert single.losses[2] < single.losses[0]
    assert steps.events
