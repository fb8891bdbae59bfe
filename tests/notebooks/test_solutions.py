"""Solutions of the exercises, without a framework: each does what its exercise asks for."""

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from fake_chapter import CONFIG
from hypothesis import given, strategies as st
from numpy_chapter import NumpyChapter
from scratch_steps import LR, batches, start

from common.base.arrays import Weights
from common.parallel.schedules import SCHEDULES
from notebooks.exercises import multiple_gpus as solutions

N = 1200
SPEED = st.one_of(st.integers(0, 9), st.floats(0, 1e6))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Shows what it is moved to."""
    made: Any = SimpleNamespace(now=0.0, perf_counter=lambda: made.now)
    monkeypatch.setattr(solutions, "time", made)
    return made


class Queueing(NumpyChapter):
    """Queues a step in a second, and needs nine more for it; the first one takes a minute."""

    def __init__(self, clock: Any) -> None:
        self.clock, self.queued, self.cold = clock, 0, True

    def train_batch(self, *batch: Any) -> float:
        self.clock.now += 61 if self.cold else 1
        self.queued, self.cold = self.queued + 1, False
        return super().train_batch(*batch)

    def synchronize(self, replicas: list[Weights]) -> None:
        self.clock.now += 9 * self.queued
        self.queued = 0

    def replicate(self, *of: Any) -> list[Weights]:
        self.synchronize([])  # a copy waits for what is queued
        return super().replicate(*of)


def test_each_number_of_devices_gets_its_own_batches_and_rates() -> None:
    run = Mock()
    list(solutions.scaled_batches(run, "abc", 20, 0.5))
    assert [call.args for call in run.call_args_list] == [
        ("a", 20, 0.5),
        *(("ab", 40, 0.5), ("ab", 40, 1.0)),
        *(("abc", 60, 0.5), ("abc", 60, 1.5)),
    ]


def test_speed_is_of_steps_that_are_done(clock: Any) -> None:
    data, held_out = batches(2, 20, "float64")
    found = solutions.one_pass(
        Queueing(clock), start("float64"), data, held_out, ["a", "b"], 10, LR
    )
    assert found.images_per_second == 20 / (2 * (1 + 9))


def test_late_losses_are_the_last_quarter() -> None:
    assert solutions.late([9, 9, 9, 9, 9, 9, 4, 2]) == 3
    assert solutions.late([7, 7, 7, 6, 4]) == 5


@pytest.mark.parametrize(
    ("algorithm", "k", "rounds", "moved"),
    [
        ("star", 3, 2, 2 * N * 4),
        ("ring", 3, 4, 2 * 2 * N * 4 // 3),
        ("halving", 4, 4, 2 * 3 * N * 4 // 4),
    ],
)
def test_bytes_of_the_busiest_device(algorithm: str, k: int, rounds: int, moved: int) -> None:
    assert solutions.bytes_per_device(algorithm, k, N) == (rounds, moved, moved)


def test_every_rate_is_tried_on_every_number_of_devices() -> None:
    def run(devices: Sequence[str], batch_size: int, lr: float) -> Any:
        return SimpleNamespace(loss=(devices, batch_size, lr))

    found: dict[tuple[int, float], Any] = dict(solutions.learning_rates(run, "abc", 8, [0.5, 2.0]))
    assert found == {
        **{(1, 0.5): ("a", 8, 0.5), (1, 2.0): ("a", 8, 2.0)},
        **{(2, 0.5): ("ab", 16, 0.5), (2, 2.0): ("ab", 16, 2.0)},
        **{(3, 0.5): ("abc", 24, 0.5), (3, 2.0): ("abc", 24, 2.0)},
    }


@given(st.integers(0, 10**6), st.lists(SPEED, min_size=1, max_size=9).filter(any))
def test_sizes_are_in_proportion_to_speeds(examples: int, speeds: list[float]) -> None:
    sizes = solutions.weighted_shard_sizes(examples, speeds)
    assert sum(sizes) == examples
    shares = [examples * (speed / sum(speeds)) for speed in speeds]
    over = [size - share for size, share in zip(sizes, shares, strict=True)]
    # What was rounded up had the larger remainder; 1e-6 is what `shares` may be off by.
    assert all(abs(each) < 1 + 1e-6 for each in over)
    assert max(over) - min(over) <= 1 + 1e-6
    assert all(size == 0 for size, speed in zip(sizes, speeds, strict=True) if speed == 0)


@pytest.mark.parametrize("speeds", [[0, 0.0], [-1, 2], [np.nan, 1]])
def test_speeds_that_are_none_are_refused(speeds: list[float]) -> None:
    with pytest.raises(ValueError, match="no shards for devices of the speeds"):
        solutions.weighted_shard_sizes(10, speeds)


def test_a_clock_that_waits_shows_more(clock: Any) -> None:
    chapter = Queueing(clock)
    replicas = chapter.replicate(start("float64"), ["a"], CONFIG.options)
    step = partial(
        chapter.train_batch, *batches(1, 2, "float64")[0], replicas, ["a"], LR, CONFIG.options
    )
    wait = partial(chapter.synchronize, replicas)
    assert solutions.seconds_with_and_without_waiting(step, wait, 4) == (4, 40)


class Losses:
    """Each is under way from when it is taken until it is waited for."""

    def __init__(self) -> None:
        self.under_way: list[int] = []
        self.most = 0

    def take(self, count: int) -> Iterator[Any]:
        for number in range(count):
            self.under_way.append(number)
            self.most = max(self.most, len(self.under_way))
            yield Mock(__float__=Mock(side_effect=partial(self.wait, number)))

    def wait(self, number: int) -> float:
        self.under_way.remove(number)
        return float(number)


@pytest.mark.parametrize("ahead", [0, 2, 9])
def test_no_more_steps_are_under_way_than_may_be(ahead: int) -> None:
    losses = Losses()
    assert solutions.losses_behind(losses.take(6), ahead) == [0, 1, 2, 3, 4, 5]
    assert losses.most == min(ahead + 1, 6)
    assert losses.under_way == []


@pytest.mark.parametrize("algorithm", SCHEDULES)
@pytest.mark.parametrize("k", [2, 5])
def test_without_barriers_sums_are_wrong(algorithm: str, k: int) -> None:
    vectors = [10**device * np.arange(1, 8) for device in range(k)]
    schedule = SCHEDULES[algorithm](k)
    found = solutions.carried_out(schedule, vectors)
    np.testing.assert_array_equal(found, [sum(vectors)] * k)
    loose = solutions.without_barriers(schedule)
    assert sorted(map(repr, loose.rounds[0])) == sorted(
        repr(transfer) for one in schedule.rounds for transfer in one
    )
    hurried = solutions.carried_out(loose, vectors)
    assert any((each != sum(vectors)).any() for each in hurried)
    np.testing.assert_array_equal(vectors, [10**device * np.arange(1, 8) for device in range(k)])
