"""Every schedule sums, at the cost that textbooks give."""

from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.arrays import Array
from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_bounds

NAMES = sorted(SCHEDULES)


def sums(schedule: Schedule, vectors: list[Array]) -> list[Array]:
    """The vector of each device in the end."""
    bounds, received = shard_bounds(len(vectors[0]), schedule.chunks), [0] * len(vectors)

    def receive(chunk: Array, target: int) -> Array:
        received[target] += len(chunk)
        return chunk.copy()

    held = [[vector[a:b].copy() for a, b in bounds] for vector in vectors]
    execute(schedule, held, receive)
    for one in schedule.rounds:  # a message between two devices, and no second one
        pairs = {(transfer.source, transfer.target) for transfer in one}
        assert len(pairs) == len(one)
        assert all(a != b for a, b in pairs)
    assert received == [arrived for _, arrived in schedule.traffic(len(vectors[0]))]
    return [np.concatenate(chunks) for chunks in held]


@given(
    st.sampled_from(NAMES),
    st.integers(1, 17),
    st.integers(0, 40),
    st.sampled_from(["float32", "float64"]),
    st.integers(0, 2**32 - 1),
)
def test_every_device_gets_the_sum_bit_for_bit(
    name: str, k: int, size: int, dtype: str, seed: int
) -> None:
    random = np.random.RandomState(seed)
    vectors = [random.standard_normal(size).astype(dtype) for _ in range(k)]
    first, *others = sums(SCHEDULES[name](k), vectors)
    assert first.dtype == dtype
    # Each of the k - 1 additions rounds once, by half an ulp of a sum of absolute values at most.
    exact = np.sum(np.asarray(vectors, "float64"), axis=0)
    bound = (k - 1) * np.finfo(dtype).eps * np.abs(np.asarray(vectors, "float64")).sum(axis=0)
    assert (np.abs(first - exact) <= bound).all()
    assert all(first.tobytes() == other.tobytes() for other in others)


@pytest.mark.parametrize("k", range(2, 18))
def test_traffic_is_that_of_the_textbooks(k: int) -> None:
    n, inner = 720720 * 17 * 16, 2 ** int(log2(k))  # every k divides n, and every power of two
    share, half, extras = 2 * (k - 1) * n // k, 2 * (inner - 1) * n // inner, k - inner
    schedules = {name: SCHEDULES[name](k) for name in NAMES}
    traffic = {name: [sent for sent, _ in each.traffic(n)] for name, each in schedules.items()}
    assert traffic["star"] == [(k - 1) * n] + [n] * (k - 1)
    assert traffic["sharded"] == traffic["ring"] == [share] * k
    assert sum(traffic["tree"]) == 2 * (k - 1) * n
    assert traffic["halving"] == [half + n] * extras + [half] * (inner - extras) + [n] * extras
    assert {name: len(each.rounds) for name, each in schedules.items()} == {
        "star": 2,
        "sharded": 2,
        "ring": 2 * (k - 1),
        "tree": 2 * ceil(log2(k)),
        "halving": 2 * log2(inner) + 2 * (extras > 0),
    }
