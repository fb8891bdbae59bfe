"""Shards of a minibatch, and copies of the weights, on devices of one process and of several."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.parallel.replicas import (
    ONLY,
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
    barrier: Barrier

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


def in_each(processes: int, work: Callable[[Communicator], T]) -> list[T]:
    """What `work` gives in each of some processes, by rank."""
    said, barrier = [np.zeros(0)] * processes, Barrier(processes)
    members = [Member(number, said, barrier) for number in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        return list(pool.map(work, members))


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
            member = Member(rank, [np.zeros(0)] * processes, Barrier(1))
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
    assert joined(rows, ONLY) is rows


@pytest.mark.parametrize(("processes", "first"), [(1, 1), (3, 4)])
@pytest.mark.parametrize(("name", "place"), [("weight", 0), ("bias", 3)])
def test_a_differing_number_and_its_first_device_are_named_in_all_processes(
    processes: int, first: int, name: str, place: int
) -> None:
    def work(hosts: Communicator) -> None:
        # NaN in the same place is the same.
        bias = np.array([0, np.nan, 0, 0])
        replicas = [{"weight": np.linspace(-1, 1, 12), "bias": bias.copy()} for _ in range(2)]
        assert same_everywhere(replicas, hosts) is replicas[0]
        for device, replica in enumerate(replicas, 2 * hosts.rank()):
            if device >= first:
                replica[name][place] = np.nextafter(replica[name][place], np.inf)
        with pytest.raises(RunError, match=f"^{name} on device {first} differs from its copy on"):
            same_everywhere(replicas, hosts)

    in_each(processes, work)


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
