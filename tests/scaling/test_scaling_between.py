"""What is measured between processes on several hosts, and what is predicted of it."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clocks import costs, line
from started import free_port

from common.backends.devices import Process
from common.base.errors import StoppedError
from common.chapters.data_parallel import FromScratch
from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES, Schedule
from common.scaling import between
from common.scaling.formulas import FORMULAS, ITEM, Link, seconds
from common.scaling.predict import predict_at_once
from common.scaling.results import read_scaling
from common.scaling.workloads import Allreduce, Call, Laboratory, Step, Timed

ROOT = Path(__file__).parents[2]

BRIEF = """
import sys
from common.scaling import __main__, between
# No more rounds than it takes at least, as soon as any process has no time left.
between.BUDGET = 0 if "--host-rank=0" in sys.argv else 1000
raise SystemExit(__main__.main())
"""


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_hosts_that_work_at_the_same_time_take_what_the_formula_says(name: str) -> None:
    known = costs(line(1e-4, 3e-9), line(0, 1e-9), *(line(cut, 0) for cut in (1, 2, 3, 4)))
    link = Link(1e-4, 3e-9 / ITEM, 1e-9 / ITEM)
    for k, entries in product((2, 3, 6, 8), (1, 100_000)):
        cut = min(SCHEDULES[name](k).chunks, 4)
        found = predict_at_once(known, name, k, entries)
        assert found == pytest.approx(seconds(name, k, entries, link) + cut, rel=1e-9)


def test_an_addition_counts_once_for_each_message_that_is_added() -> None:
    known = costs(line(0, 0), line(1, 0))
    counted = {name: predict_at_once(known, name, 4, 100) for name in FORMULAS}
    assert counted == {"star": 3, "sharded": 3, "ring": 3, "tree": 2, "halving": 2}


def gather_of(k: int, of_others: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [value, *[of_others(value)] * (k - 1)]


def test_a_step_is_predicted_to_compute_and_to_sum_one_tensor_after_the_other() -> None:
    seconds: dict[Timed, float] = {Step(10, ""): 1000, Step(10, "ring"): 1, Step(10, "native"): 1}
    taught = between.Lessons({}, [9, 3, 1])
    ring, native = between.steps(costs(line(1, 0.1), line(0, 0)), seconds, 3, taught)
    # Four messages of a third of a tensor, at least of a number; each of three devices sends them.
    assert ring.predicted == pytest.approx(1000 + 3 * 4 + 0.1 * 4 * (3 + 1 + 1))
    assert ring.in_turn == pytest.approx(1000 + 3 * 12 + 0.1 * 4 * (9 + 3 + 1))
    assert native.predicted is native.in_turn is None


def test_a_step_sums_the_tensors_that_are_predicted(
    scratch: FromScratch, all_devices: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = []

    def by_schedule(schedule: Schedule, data: Sequence[Any]) -> list[Any]:
        summed.append(prod(data[0].shape))
        return scratch.collectives.by_schedule(schedule, data)

    monkeypatch.setattr(between, "IMAGES", 2)
    counting: Any = SimpleNamespace(by_schedule=by_schedule)
    lab = Laboratory(replace(scratch, collectives=counting), all_devices[:2], (2,), ("ring",))
    taught = between.lessons(lab, 2)
    for call in taught.calls.values():
        lab.once(call)
    assert sorted(summed) == sorted(taught.summed)


def test_the_slowest_process_counts() -> None:
    process = Process(0, 2, gather=gather_of(2, lambda value: [2 * each for each in value]))
    assert between.slowest(process, [1.0, 2e-6]) == pytest.approx([2.0, 4e-6])


def test_a_signal_to_any_process_stops_all() -> None:
    process = Process(0, 2, gather=gather_of(2, lambda value: [False, True]))
    calls: dict[Timed, Call] = {Allreduce(1, 2, "star"): list}
    lab: Any = SimpleNamespace(
        counts=(2,), vectors=lambda *_: [], allreduce=lambda *_: list, once=lambda call: 0.0
    )
    with pytest.raises(StoppedError, match="kept nothing"):
        between.timed(lab, calls, process, 0)


@pytest.mark.only("pytorch")
def test_two_processes_measure_and_the_first_one_speaks(framework: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", BRIEF, f"--framework={framework}", "--sizes=1000"]
    command += ["--threads=1", f"--coordinator=127.0.0.1:{free_port()}", "--hosts=2"]
    started = [
        subprocess.Popen(
            [*command, f"--host-rank={rank}", f"--out={tmp_path / str(rank)}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (1, 0)
    ]
    second, first = [(*each.communicate(timeout=300), each.returncode) for each in started]
    assert first[2] == 0, first[1]
    assert second == ("", "", 0)
    assert not (tmp_path / "1").exists()
    printed = " ".join(first[0].split())
    assert printed.index("MEASURED") < printed.index("a step of LeNet on 2 devices")
    assert "in 2 processes on 1 host, joined by" in printed
    assert printed.count("allreduce of") == 1
    assert "so the second is nearer" in printed
    found = read_scaling(tmp_path / "0" / "scaling.json").measured
    over = found.over
    assert over
    assert (over.machines, len(over.hosts)) == (1, 2)
    for rows in (found.compared, over.steps):
        assert [each.algorithm for each in rows] == list(ALLREDUCES)
        for each in rows:
            native = each.algorithm == "native"
            assert (each.predicted is None) == (each.in_turn is None) == native
    for step in over.steps:
        assert step.predicted is None or step.predicted >= step.computing > 0
