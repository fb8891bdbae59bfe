"""What is timed between virtual devices, the constants that come of it, and what they predict."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from clocks import HERE, costs, line, probes

from common.base.arrays import Array
from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_bounds
from common.scaling import measure as measuring
from common.scaling.predict import fit, predict
from common.scaling.results import LIMITS
from common.scaling.workloads import COUNTS, Allreduce, Trial, trials


def test_predictions_by_hand() -> None:
    known = costs(line(1, 0.1), line(10, 1), *(line(100 * cut, 0) for cut in (1, 2, 3, 4)))
    # Four messages of 6 numbers, of which two are added.
    assert predict(known, SCHEDULES["star"](3), 6) == pytest.approx(4 * 1.6 + 2 * 16 + 3 * 100)
    # Every device sends 2 + 1 + 1 + 2 chunks of 2 numbers; half of them are added.
    assert predict(known, SCHEDULES["halving"](4), 8) == pytest.approx(24 * 1.2 + 12 * 12 + 4 * 400)


def by_schedule(schedule: Schedule, vectors: Sequence[Array]) -> list[Array]:
    bounds = shard_bounds(len(vectors[0]), schedule.chunks)
    held = [[vector[a:b] for a, b in bounds] for vector in vectors]
    execute(schedule, held, lambda chunk, _: chunk.copy())
    return [np.concatenate(chunks) for chunks in held]


@pytest.mark.parametrize("k", [1, *COUNTS])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_a_prediction_counts_every_message_that_is_carried_out(name: str, k: int) -> None:
    schedule, sizes = SCHEDULES[name](k), []

    def receive(chunk: Array, _: int) -> Array:
        sizes.append(len(chunk))
        return chunk.copy()

    held = [[np.ones(b - a) for a, b in shard_bounds(61, schedule.chunks)] for _ in range(k)]
    execute(schedule, held, receive)
    assert predict(costs(line(1, 0), line(0, 0)), schedule, 61) == len(sizes)
    assert predict(costs(line(0, 1), line(0, 0)), schedule, 61) == sum(sizes)


def test_the_constants_are_found_again() -> None:
    found = fit(probes(HERE, [129_068, 11_175_818]))
    pairs = [(found.message, HERE.message), (found.addition, HERE.addition)]
    for got, wanted in [*pairs, *zip(found.cut, HERE.cut, strict=True)]:
        for a, b in zip(got.pieces(), wanted.pieces(), strict=True):
            assert a.fixed == pytest.approx(b.fixed, rel=1e-6)
            assert a.per_entry == pytest.approx(b.per_entry, rel=1e-6, abs=1e-15)


def test_no_constant_is_negative_whatever_the_clock_shows() -> None:
    free = costs(line(1e-5, 0), line(0, 1e-9), *HERE.cut)
    for error in (0.01, 0.1, 0.5):
        found = fit(probes(free, [1000], error))
        for both in (found.message, found.addition, *found.cut):
            for each in both.pieces():
                assert each.fixed >= 0
                assert each.per_entry >= 0


def test_trials_are_no_allreduce() -> None:
    for trial in trials(100):
        moved = [len(one) for one in trial.schedule().rounds]
        assert moved == [1] * trial.messages
    for adds in (False, True):  # it comes back changed by nothing, or keeps growing
        first, second = by_schedule(Trial(1, 1, 4, adds).schedule(), [np.ones(1), 2 * np.ones(1)])
        assert (first[0], second[0]) == ((11, 7) if adds else (1, 1))


def test_a_time_is_the_lower_quartile_of_all_rounds() -> None:
    clock = {"short": [9.0], "long": [9.0, 5.0, 1.0, 9.0]}  # the first one is to warm up
    for sweep in range(3 * 4):  # of two calls the faster one counts, whichever it is
        clock["short"] += [sweep, 100.0] if sweep % 2 else [100.0, sweep]
    lab: Any = SimpleNamespace(once=lambda name: clock[name].pop(0))
    short, long = Allreduce(LIMITS[-1], 2, "star"), Allreduce(LIMITS[-1] + 1, 2, "star")
    calls: Any = {short: "short", long: "long"}
    assert measuring.timed(lab, calls, deadline=0) == {short: 2.75, long: 3.0}
    assert clock == {"short": [], "long": []}
