"""How a minibatch is split."""

import pytest
from hypothesis import given, strategies as st

from common.parallel.shards import shard_bounds, shard_sizes

examples, shards = st.integers(0, 5000), st.integers(1, 64)


@given(examples, shards)
def test_sizes_add_up_and_differ_by_at_most_one(n: int, k: int) -> None:
    sizes = shard_sizes(n, k)
    assert len(sizes) == k
    assert sum(sizes) == n
    assert max(sizes) - min(sizes) <= 1


@given(examples, shards)
def test_larger_shards_come_first(n: int, k: int) -> None:
    sizes = shard_sizes(n, k)
    assert sizes == sorted(sizes, reverse=True)


@given(examples, shards)
def test_every_example_is_in_exactly_one_shard_and_in_order(n: int, k: int) -> None:
    bounds = shard_bounds(n, k)
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(n))
    assert [stop - start for start, stop in bounds] == shard_sizes(n, k)


def test_an_uneven_minibatch() -> None:
    assert shard_sizes(256, 3) == [86, 85, 85]
    assert shard_bounds(10, 3) == [(0, 4), (4, 7), (7, 10)]


def test_shards_are_empty_only_where_there_are_more_of_them_than_examples() -> None:
    assert shard_bounds(2, 4) == [(0, 1), (1, 2), (2, 2), (2, 2)]
    assert 0 not in shard_sizes(4, 4)


@pytest.mark.parametrize("split", [shard_sizes, shard_bounds])
@pytest.mark.parametrize(("n", "k"), [(-1, 2), (5, 0), (5, -1)])
def test_what_cannot_be_split_is_an_error(split: object, n: int, k: int) -> None:
    assert callable(split)
    with pytest.raises(ValueError, match=f"cannot split {n} examples into {k} shards"):
        split(n, k)
