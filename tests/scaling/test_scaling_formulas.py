"""The alpha-beta model: formulas against the schedules, walked message by message."""

import pytest
from hypothesis import given, strategies as st

from common.parallel.schedules import SCHEDULES, Round
from common.parallel.shards import shard_sizes
from common.scaling.formulas import ITEM, Link, seconds

positive = st.floats(1e-9, 1e3)


def round_seconds(one: Round, sizes: list[int], link: Link) -> float:
    """A round lasts until its slowest device has sent and added."""
    sent: dict[int, float] = {}
    received: dict[int, float] = {}
    added: dict[int, float] = {}
    for transfer in one:
        size = ITEM * sum(sizes[chunk] for chunk in transfer.chunks)
        a, b, taken = transfer.source, transfer.target, link.latency + link.per_byte * size
        sent[a] = sent.get(a, 0) + taken
        received[b] = received.get(b, 0) + taken
        added[b] = added.get(b, 0) + link.per_byte_added * size * transfer.adds
    return max(
        max(sent.get(device, 0), received.get(device, 0)) + added.get(device, 0)
        for device in {*sent, *received}
    )


@given(
    st.sampled_from(sorted(SCHEDULES)),
    st.integers(1, 40),
    st.integers(0, 300),
    st.builds(Link, positive, positive, positive),
)
def test_a_formula_gives_the_time_of_its_schedule(
    name: str, k: int, entries: int, link: Link
) -> None:
    schedule = SCHEDULES[name](k)
    sizes = shard_sizes(entries, schedule.chunks)
    expected = sum(round_seconds(one, sizes, link) for one in schedule.rounds)
    assert seconds(name, k, entries, link) == pytest.approx(expected, rel=1e-9)
