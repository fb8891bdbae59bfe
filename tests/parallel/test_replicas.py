"""Shards of a minibatch, and copies of the weights."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.backends.interface import Process
from common.base.errors import RunError
from common.parallel.replicas import same_everywhere
from common.parallel.shards import shard_bounds, shard_sizes
from common.trainers.concise import ByWrapper


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
            chapter = ByWrapper(none, none, none, none, none, Process(rank, processes))
            rows = np.arange(examples)[chapter.here(range(examples), range(devices))]
            found += [rows[a:b].tolist() for a, b in shard_bounds(len(rows), devices)]
        bounds = shard_bounds(examples, processes * devices)
        assert found == [list(range(a, b)) for a, b in bounds], examples


@pytest.mark.parametrize(("name", "place"), [("weight", 0), ("weight", 11), ("bias", 3)])
def test_a_differing_number_and_its_first_device_are_named(name: str, place: int) -> None:
    bias = np.array([0, np.nan, 0, 0])  # NaN in the same place is the same
    replicas = [{"weight": np.linspace(-1, 1, 12), "bias": bias.copy()} for _ in range(4)]
    assert same_everywhere(replicas) is replicas[0]
    for replica in replicas[2:]:
        replica[name][place] = np.nextafter(replica[name][place], np.inf)
    with pytest.raises(RunError, match=f"^{name} on device 2 differs from its copy on device 0$"):
        same_everywhere(replicas)
