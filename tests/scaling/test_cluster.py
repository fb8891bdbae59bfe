"""What schedules take is what the page's formulas say."""

from math import ceil, log2

import pytest

from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import Link, path, seconds


@pytest.mark.parametrize("k", range(2, 41))
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_takes_what_the_page_says(name: str, k: int) -> None:
    n, p = 16 * k * 32, 2 ** int(log2(k))
    levels, extra = ceil(log2(k)), k > p
    moved = {
        "star": 2 * (k - 1) * n,
        "tree": 2 * levels * n,
        "halving": 2 * (p - 1) * n // p + 2 * n * extra,
    }.get(name, 2 * (k - 1) * n // k)
    messages = {"tree": 2 * levels, "halving": 2 * int(log2(k)) + 2 * extra}
    found = path(SCHEDULES[name](k), n)
    assert (found.messages, found.moved) == (messages.get(name, 2 * (k - 1)), moved)
    assert found.added == moved // 2
    link = Link(latency=3.0, per_byte=5.0, per_byte_added=7.0)
    expected = 3 * found.messages + 5 * 4 * moved + 7 * 4 * moved // 2
    assert seconds(name, k, n, link) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["ring", "sharded"])
def test_where_k_does_not_divide_n_the_largest_chunk_counts(name: str) -> None:
    found = path(SCHEDULES[name](3), 10)
    assert (found.moved, found.added) == (4 * 4, 2 * 4)
