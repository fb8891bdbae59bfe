"""Solutions of the exercises in the framework under test, against the judge."""

from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest.mock import Mock

import judge
import numpy as np
import pytest
from scratch_steps import IMAGES, LABELS, LR, as_array, batches, far, place, start

from common.base.arrays import Weights
from common.chapters.scratch import ScratchOptions
from common.data.minibatches import pixels
from common.parallel.shards import shard_sizes
from notebooks.exercises import multiple_gpus as solutions

COUNTS = (1, 3)
DATA = pixels(IMAGES[:40], "float64"), LABELS[:40].astype(np.int64)
OPTIONS = ScratchOptions()


@pytest.mark.parametrize("k", COUNTS)
def test_one_pass_is_that_of_the_judge(scratch: Any, all_devices: Sequence[Any], k: int) -> None:
    steps = [(DATA[0][i : i + 15], DATA[1][i : i + 15]) for i in range(0, 40, 15)]
    held_out = batches(1, 40, "float64")[0]
    losses, weights = judge.sgd(start("float64"), steps, [LR] * 3)
    right = judge.forward(held_out[0], weights)["logits"].argmax(axis=1) == held_out[1]
    run = partial(solutions.one_pass, scratch, start("float64"), DATA, held_out)
    found = run(all_devices[:k], 15, LR)
    assert found[:3] == (k, 15, LR)
    np.testing.assert_allclose(found.loss, losses[-1], rtol=1e-12)
    assert found.accuracy == right.mean()
    assert found.images_per_second > 0


def home(tensor: Any) -> str:
    """The device on which a tensor lies."""
    return str(getattr(tensor, "ctx", None) or tensor.device)


@pytest.mark.parametrize("k", COUNTS)
def test_stars_take_turns_on_any_device(scratch: Any, all_devices: Sequence[Any], k: int) -> None:
    names = ("w", "x", "y", "z")
    rows = {name: np.random.RandomState(ord(name)).standard_normal((k, 5)) for name in names}
    placed = {name: place(scratch.listing, all_devices[:k], rows[name]) for name in names}
    grads = [{name: placed[name][i] for name in names} for i in range(k)]
    allreduce = Mock(wraps=scratch.listing.allreduce)
    summed = solutions.sum_in_turn(allreduce, grads)
    middles = [home(call.args[0][0]) for call in allreduce.call_args_list]
    assert middles == [home(grads[i % k]["w"]) for i in range(4)]
    for own, each in zip(grads, summed, strict=True):
        for name in names:
            np.testing.assert_allclose(as_array(each[name]), rows[name].sum(axis=0), rtol=1e-12)
            assert home(each[name]) == home(own[name])


@pytest.fixture(scope="module")
def weights() -> Weights:
    """A net that gives several answers."""
    return judge.sgd(start("float64"), batches(4, 35, "float64"), [LR] * 4)[1]


def count_right(logits: Any, labels: Any) -> int:
    return int((as_array(logits).argmax(axis=1) == as_array(labels)).sum())


@pytest.mark.parametrize(("k", "examples"), [(1, 40), (3, 40), (5, 3)])
def test_accuracy_is_that_of_all_answers(
    scratch: Any, all_devices: Sequence[Any], weights: Weights, k: int, examples: int
) -> None:
    X, y = DATA[0][-examples:], DATA[1][-examples:]
    answers = judge.forward(X, weights)["logits"].argmax(axis=1)
    y = np.where(np.arange(examples) % 3 == 0, answers, y)  # some are right in any case
    expected = (answers == y).mean()
    own, filled = all_devices[:k], all_devices[: min(k, examples)]
    scatter, on_each_device = scratch.kernels.scatter, scratch.kernels.on_each_device
    replicas = scratch.replicate(weights, filled, OPTIONS)
    logits = on_each_device(scratch.listing.lenet, scatter(X, filled), replicas)
    labels = scatter(y, own)
    assert solutions.accuracy_of_shards(logits, labels, count_right) == expected


@pytest.mark.parametrize(
    "speeds",
    [[3, 1], [1, 0, 4]],
    ids=lambda speeds: "-".join(map(str, speeds)),
)
def test_uneven_shards_keep_the_gradient(
    scratch: Any, all_devices: Sequence[Any], speeds: list[float]
) -> None:
    own = all_devices[: len(speeds)]
    X, y = batches(1, 35, "float64")[0]
    sizes = solutions.weighted_shard_sizes(35, speeds)
    assert sizes != shard_sizes(35, len(speeds))
    found = solutions.weighted_gradient(scratch, start("float64"), (X, y), own, sizes)
    replicas = scratch.replicate(start("float64"), own, OPTIONS)
    assert far(found, scratch.gradients(X, y, replicas, own, OPTIONS)) < 1e-12
    assert far(found, judge.loss_and_gradients(X, y, start("float64"))[1]) < 1e-12
