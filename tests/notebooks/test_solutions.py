"""Solutions of the exercises, without a framework and in the one under test; steps of cells."""

import linecache
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scratch_steps import IMAGES, LABELS, LR, batches, far, start

from common.base.arrays import Array, Weights, on_host
from common.chapters.scratch import ScratchOptions
from common.compare import numpy_nets
from common.data.dataset import pixels
from common.judge import check
from common.judge.judgement import judge
from common.models import nets
from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import Link, seconds
from notebooks.classroom.splits import take_steps
from notebooks.exercises import solutions, write_it
from notebooks.exercises.solutions import ring_beats_halving_from
from notebooks.exercises.wrong import mended
from notebooks.text.chapter import cells

LINK = Link(latency=5e-6, per_byte=1 / 25e9, per_byte_added=1 / 500e9)
CELLS = {cell.id: cell for cell in cells("exercises", "jax") if "check(" in cell.text}
NUMPY = [name for name in CELLS if not name.startswith(("exercise-1-", "exercise-13-"))]
"""The cells of the chapter "Write it yourself" that print a verdict; those without a framework."""

WRONG = {
    "7": "at 2 devices, size 1, float64: device 1 has the values of 1 only",
    "8": "at 2 devices: device 0 has the values of 0 only in chunk 0; device 1 has the values of 1",
    "9": "at 2 devices, 4 examples, 6 inputs, 6 outputs: dX on device 0 is only a part of the sum",
    "10": "at step 2, of 11 examples: the gradient is the mean of the means of 2 shards, which di",
    "11": "at step 1, of 12 examples: the gradient is without examples 0, 1, 2, 3, 4, 5, 6 ",
}
"""By the number of an exercise: what is wrong in its listing."""

SPEED = st.one_of(st.integers(0, 9), st.floats(0, 1e6))
DATA = pixels(IMAGES[:40], "float64"), LABELS[:40].astype(np.int64)
OPTIONS = ScratchOptions()


@given(st.integers(0, 10**6), st.lists(SPEED, min_size=1, max_size=9).filter(any))
def test_sizes_are_in_proportion_to_speeds(examples: int, speeds: list[float]) -> None:
    sizes = solutions.weighted_shard_sizes(examples, speeds)
    assert sum(sizes) == examples
    shares = [examples * (speed / sum(speeds)) for speed in speeds]
    over = [size - share for size, share in zip(sizes, shares, strict=True)]
    # Larger remainders are rounded up; 1e-6 is the error of `shares`.
    assert all(abs(excess) < 1 + 1e-6 for excess in over)
    assert max(over) - min(over) <= 1 + 1e-6
    with pytest.raises(ValueError, match="no shards for devices of the speeds"):
        solutions.weighted_shard_sizes(10, [*speeds, -1])


@pytest.mark.parametrize("ahead", [0, 2, 9])
def test_no_more_steps_are_under_way_than_may_be(ahead: int) -> None:
    under_way: list[int] = []
    most = []

    def wait(number: int) -> float:
        under_way.remove(number)
        return float(number)

    def take() -> Iterator[Any]:
        for number in range(6):
            under_way.append(number)
            most.append(len(under_way))
            yield Mock(__float__=Mock(side_effect=partial(wait, number)))

    assert solutions.losses_behind(take(), ahead) == [0, 1, 2, 3, 4, 5]
    assert (max(most), under_way) == (min(ahead + 1, 6), [])


@pytest.mark.parametrize("algorithm", SCHEDULES)
@pytest.mark.parametrize("k", [2, 5])
def test_without_barriers_sums_are_wrong(algorithm: str, k: int) -> None:
    vectors = [10**device * np.arange(1, 8) for device in range(k)]
    schedule = SCHEDULES[algorithm](k)
    np.testing.assert_array_equal(solutions.carry_out(schedule, vectors), [sum(vectors)] * k)
    hurried = solutions.carry_out(solutions.drop_barriers(schedule), vectors)
    assert any((total != sum(vectors)).any() for total in hurried)


@pytest.mark.parametrize("k", [2, 3, 12, 16])
def test_the_length_is_where_the_ring_begins_to_win(k: int) -> None:
    least = ring_beats_halving_from(k, LINK)
    assert (least is None) == (k in {2, 16})  # never, on powers of two

    def gain(n: int) -> float:
        return seconds("halving", k, n, LINK) - seconds("ring", k, n, LINK)

    if least is not None:
        assert gain(least - 1) <= 0 < min(gain(least), gain(100 * least))


def test_a_variance_over_one_less_is_larger_by_as_much_as_a_run_finds() -> None:
    seen = np.random.RandomState(0).standard_normal(96)
    over_n, over_less = 1.0, 1.0
    for _ in range(2):
        over_n += nets.MOMENTUM * (seen.var() - over_n)
        over_less += nets.MOMENTUM * (seen.var(ddof=1) - over_less)
    assert solutions.excess(96, 2, float(seen.var())) == pytest.approx(over_less / over_n - 1)


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What each of `CELLS` prints that needs only NumPy."""
    names: dict[str, Any] = {"check": check, "numpy": np}
    texts = {}
    for name in NUMPY:
        code = CELLS[name].text
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
        with redirect_stdout(StringIO()) as text:
            exec(compile(code, name, "exec"), names)
        texts[name] = text.getvalue()
    return texts


@pytest.mark.parametrize("name", NUMPY)
def test_an_exercise_is_wrong_and_its_answer_right(name: str, printed: dict[str, str]) -> None:
    due: Any = {"solution": "right: ", "cell": ("wrong: at ", "not judged: at ")}
    wrong = f"wrong: {WRONG.get(name.split('-')[1])}"
    assert printed[name].startswith(due.get(CELLS[name].kind, wrong))


def test_a_wrong_update_of_zero_is_named() -> None:
    for old, new, text in (
        ("momentum * velocities[device] + grad", "grad", "has -0.9 times the last update added"),
        ("for copy in params", "for copy in params[:1]", "is not the same on all devices"),
    ):
        reader = write_it.Training(write_it.with_zero1(mended(write_it.zero1_update, old, new)))
        assert text in judge("step", reader).text.splitlines()[0]


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
