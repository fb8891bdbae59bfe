"""How a minibatch is split."""

import pytest
from hypothesis import given, strategies as st

from common.parallel.shards import shard_bounds, shard_sizes


@given(st.integers(0, 5000), st.integers(1, 64))
def test_every_example_is_in_one_shard_in_order_and_larger_shards_come_first(
    n: int, k: int
) -> None:
    bounds, sizes = shard_bounds(n, k), shard_sizes(n, k)
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(n))
    assert [stop - start for start, stop in bounds] == sizes == sorted(sizes, reverse=True)
    assert len(sizes) == k
    assert max(sizes) - min(sizes) <= 1


def test_an_uneven_minibatch() -> None:
    assert shard_sizes(256, 3) == [86, 85, 85]
    assert shard_bounds(2, 4) == [(0, 1), (1, 2), (2, 2), (2, 2)]


def test_no_shards_are_an_error() -> None:
    with pytest.raises(ValueError, match="cannot split 5 examples into 0 shards"):
        shard_bounds(5, 0)
