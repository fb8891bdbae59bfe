"""The alpha-beta model: formulas held to the schedules, who wins, and a step on a cluster."""

import pytest
from hypothesis import given, strategies as st

from common.parallel.schedules import SCHEDULES, Round, Schedule
from common.parallel.shards import shard_sizes
from common.scaling.formulas import FORMULAS, ITEM, Link, Path, seconds
from common.scaling.training_step import BUCKET, Net, Timing, nets, timing

NETWORK = Link(1e-5, 1 / 12.5e9, 1 / 500e9)

positive = st.floats(1e-9, 1e3)


def walked(
    schedule: Schedule, entries: int, latency: float, per_entry: float, per_entry_added: float
) -> float:
    """The seconds of all rounds; each lasts until its slowest device has moved and added."""
    sizes = shard_sizes(entries, schedule.chunks)
    return sum(_round(one, sizes, latency, per_entry, per_entry_added) for one in schedule.rounds)


def _round(
    one: Round, sizes: list[int], latency: float, per_entry: float, per_entry_added: float
) -> float:
    sent: dict[int, float] = {}
    received: dict[int, float] = {}
    added: dict[int, float] = {}
    for transfer in one:
        size = sum(sizes[chunk] for chunk in transfer.chunks)
        a, b, taken = transfer.source, transfer.target, latency + per_entry * size
        sent[a] = sent.get(a, 0) + taken
        received[b] = received.get(b, 0) + taken
        added[b] = added.get(b, 0) + per_entry_added * size * transfer.adds
    return max(
        max(sent.get(device, 0), received.get(device, 0)) + added.get(device, 0)
        for device in {*sent, *received}
    )


@given(st.sampled_from(sorted(FORMULAS)), st.integers(1, 40), st.integers(0, 300), *[positive] * 3)
def test_a_formula_gives_what_walking_its_schedule_does(
    name: str, k: int, entries: int, latency: float, per_entry: float, per_entry_added: float
) -> None:
    link = Link(latency, per_entry / ITEM, per_entry_added / ITEM)
    expected = walked(SCHEDULES[name](k), entries, latency, per_entry, per_entry_added)
    assert seconds(name, k, entries, link) == pytest.approx(expected, rel=1e-9)


def test_formulas_are_those_of_the_textbooks() -> None:
    assert FORMULAS.keys() == SCHEDULES.keys()
    n, k = 4096 * 1000, 4096
    share = (k - 1) * n // k
    assert FORMULAS["star"](k, n) == Path(2 * (k - 1), 2 * (k - 1) * n, (k - 1) * n)
    assert FORMULAS["ring"](k, n) == Path(2 * (k - 1), 2 * share, share)
    assert FORMULAS["tree"](k, n) == Path(24, 24 * n, 12 * n)
    assert FORMULAS["halving"](k, n) == Path(24, 2 * share, share)


def test_a_pipeline_by_hand() -> None:
    # Buckets are ready at 3, 5 and 7 seconds, and each takes as long as it says.
    assert Timing(1, 6, [1, 1, 1]).overlapped() == 8
    assert Timing(1, 6, [3, 3, 1]).overlapped() == 10
    assert Timing(1, 6, [3, 3, 1]).apart() == 14


def test_the_nets() -> None:
    lenet, resnet, billion = nets()
    assert (lenet.parameters, resnet.parameters, billion.parameters) == (129_068, 11_175_818, 10**9)
    assert [len(net.buckets()) for net in nets()] == [1, 2, 153]
    for net in nets():
        assert sum(net.buckets()) == net.parameters
        assert max(net.buckets()) * ITEM <= BUCKET
    assert billion.forward + billion.backward == 6 * 2048 * 10**9
    first = 2 * 26 * 26 * 20 * 9
    others = 2 * (9 * 9 * 50 * 20 * 25 + 800 * 128 + 128 * 10)
    assert (lenet.forward, lenet.backward) == (256 * (first + others), 256 * (first + 2 * others))


def test_a_step_computes_at_the_rate_of_its_device() -> None:
    net = Net("two buckets", "an example", BUCKET // 2, forward=10, backward=30)
    step = timing(net, "tree", 2, Link(1, 0, 0), rate=5)
    assert (step.forward, step.backward, step.allreduces) == (2, 6, [2, 2])


def test_on_4096_devices_a_tree_hands_over_to_a_ring_where_their_costs_cross() -> None:
    k, entries = 4096, [2**power for power in range(31)]
    faster = [seconds("ring", k, n, NETWORK) < seconds("tree", k, n, NETWORK) for n in entries]
    assert faster == sorted(faster)
    # By hand: 8,190 against 24 messages, and 2 against 24 vectors moved, 1 against 12 added.
    crossing = (8190 - 24) * 1e-5 / (4 * (22 / 12.5e9 + 11 / 500e9))
    assert entries[faster.index(True)] / 2 <= crossing <= entries[faster.index(True)]
