"""Shards of a minibatch, and copies of the weights, on devices of one process and of several."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.parallel.replicas import (
    Communicator,
    joined,
    same_everywhere,
    saved_of,
    saved_state,
    share_of,
)
from common.parallel.shards import shard_bounds, shard_sizes
from common.trainers.concise import ByWrapper

T = TypeVar("T")


@dataclass(frozen=True)
class Member:
    """Satisfies `common.parallel.replicas.Communicator`."""

    number: int
    said: list[Array]
    barrier: Barrier = field(default_factory=lambda: Barrier(1))

    def processes(self) -> int:
        return len(self.said)

    def rank(self) -> int:
        return self.number

    def gathered(self, values: Array) -> Array:
        """One that does not come is an error after 10 seconds."""
        self.said[self.number] = values
        self.barrier.wait(10)
        found = np.stack(self.said)
        assert all(each.dtype == found.dtype for each in self.said)
        assert found.dtype.kind == "f"  # MXNet's servers add nothing else
        self.barrier.wait(10)
        return found


ALONE = Member(0, [np.zeros(0)])
"""The only process of a run."""


def in_each(processes: int, work: Callable[[Communicator], T]) -> list[T]:
    """What `work` gives in each of some processes, by rank."""
    said, barrier = [np.zeros(0)] * processes, Barrier(processes)
    members = [Member(number, said, barrier) for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(work, members))


def copies(count: int) -> list[Weights]:
    """Equal copies; NaN in the same place is the same."""
    weights = {"weight": np.linspace(-1, 1, 12).reshape(3, 4), "bias": np.zeros(4)}
    weights["bias"][1] = np.nan
    return [{name: array.copy() for name, array in weights.items()} for _ in range(count)]


@given(st.integers(0, 5000), st.integers(1, 64))
def test_every_example_is_in_one_shard_in_order_and_larger_shards_come_first(
    n: int, k: int
) -> None:
    bounds, sizes = shard_bounds(n, k), shard_sizes(n, k)
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(n))
    assert [stop - start for start, stop in bounds] == sizes == sorted(sizes, reverse=True)
    assert len(sizes) == k
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("devices", range(1, 6))
@pytest.mark.parametrize("processes", range(1, 6))
def test_shards_of_a_process_are_those_of_all_devices(processes: int, devices: int) -> None:
    none: Any = None
    for examples in range(61):
        found = []
        for rank in range(processes):
            member = Member(rank, [np.zeros(0)] * processes)
            here = ByWrapper(none, none, none, none, hosts=member).here(
                range(examples), range(devices)
            )
            rows = np.arange(examples)[here]
            found += [rows[a:b].tolist() for a, b in shard_bounds(len(rows), devices)]
        bounds = shard_bounds(examples, processes * devices)
        assert found == [list(range(a, b)) for a, b in bounds], examples


@pytest.mark.parametrize("counts", [(2, 0), (3, 2, 2), (0, 0, 4)])
def test_rows_of_all_processes_are_joined_by_rank(counts: tuple[int, ...]) -> None:
    rows = np.arange(10.0 * sum(counts), dtype=np.float32).reshape(-1, 10) + 1

    def work(hosts: Communicator) -> Array:
        start = sum(counts[: hosts.rank()])
        return joined(rows[start : start + counts[hosts.rank()]], hosts)

    for found in in_each(len(counts), work):
        assert found.dtype == rows.dtype
        assert np.array_equal(found, rows)
    assert joined(rows, ALONE) is rows


@given(st.integers(1, 4), st.sampled_from(["weight", "bias"]), st.sampled_from([0, 2, 3]))
def test_one_differing_number_is_found_and_named(device: int, name: str, place: int) -> None:
    replicas = copies(5)
    assert same_everywhere(replicas, ALONE) is replicas[0]
    flat = replicas[device][name].reshape(-1)
    flat[place] = np.nextafter(flat[place], np.inf)
    with pytest.raises(RunError, match=f"^{name} on device {device} differs"):
        same_everywhere(replicas, ALONE)


def test_the_first_device_of_a_process_that_differs_is_named_in_all() -> None:
    def work(hosts: Communicator) -> RunError:
        replicas = copies(2)
        for replica in replicas:
            place = replica["bias"][3:]
            place[:] = np.nextafter(place, np.inf if hosts.rank() == 2 else place)
        with pytest.raises(RunError) as raised:
            same_everywhere(replicas, hosts)
        return raised.value

    for error in in_each(3, work):
        assert (error.tensor, error.device) == ("bias", 4)
        assert str(error) == "bias on device 4 differs from its copy on device 0"


@pytest.mark.parametrize("processes", [1, 3])
def test_statistics_of_all_devices_are_saved_and_found_again(processes: int) -> None:
    def weights(device: int) -> Weights:
        mean = np.arange(3) + 10.0 * device
        return {"fc.bias": np.ones(10), "bn1.running_mean": mean, "bn1.running_var": mean + 1}

    def work(hosts: Communicator) -> Weights:
        here = share_of(range(2 * processes), hosts)
        return saved_state([weights(device) for device in here], hosts)

    for saved in in_each(processes, work):
        assert saved["bn1.running_mean"].shape == (2 * processes, 3)
        for device in range(2 * processes):
            found, expected = saved_of(saved, device), weights(device)
            assert found.keys() == expected.keys()
            assert all(np.array_equal(found[name], expected[name]) for name in expected)
