"""What is measured between processes on several hosts, and what is predicted of it."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from clocks import HERE, costs, line
from rich.console import Console
from started import free_port

from common.backends.devices import Process
from common.base.arrays import Array, Weights
from common.base.errors import StoppedError
from common.chapters.data_parallel import FromScratch
from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES, Schedule
from common.scaling import between, lessons
from common.scaling.between import Task
from common.scaling.formulas import FORMULAS, ITEM, Link, seconds
from common.scaling.predict import predict, predict_at_once
from common.scaling.results import Compared, Measured, Scaling, Trained, read_scaling
from common.scaling.simulate import as_measured, simulate
from common.scaling.tables import show
from common.scaling.workloads import Allreduce, Call, Laboratory, Step, Timed

ROOT = Path(__file__).parents[2]

BRIEF = """
import sys
from common.scaling import __main__, between
# No more rounds than it takes at least, as soon as any process has no time left.
between.BUDGET = 0 if "--host-rank=0" in sys.argv else 1000
raise SystemExit(__main__.main())
"""


@pytest.mark.parametrize("k", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_hosts_that_work_at_the_same_time_take_what_the_formula_says(name: str, k: int) -> None:
    known = costs(line(1e-4, 3e-9), line(0, 1e-9), *(line(cut, 0) for cut in (1, 2, 3, 4)))
    link = Link(1e-4, 3e-9 / ITEM, 1e-9 / ITEM)
    for entries in (1, 100, 100_000):
        cut = min(SCHEDULES[name](k).chunks, 4)
        found = predict_at_once(known, name, k, entries)
        assert found == pytest.approx(seconds(name, k, entries, link) + cut, rel=1e-9)


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_in_turn_nothing_is_faster_than_at_once(name: str) -> None:
    for k in (2, 3, 4):
        at_once = predict_at_once(HERE, name, k, 10_000)
        assert at_once <= predict(HERE, SCHEDULES[name](k), 10_000) * (1 + 1e-12)


def test_an_addition_counts_once_for_each_message_that_is_added() -> None:
    known = costs(line(0, 0), line(1, 0))
    counted = {name: predict_at_once(known, name, 4, 100) for name in FORMULAS}
    assert counted == {"star": 3, "sharded": 3, "ring": 3, "tree": 2, "halving": 2}


class NumPyProcess:
    """One of k processes, each with one device: all of a chapter that is not the harness's.

    What it sums with the others is its own, k times.
    """

    def __init__(self, k: int) -> None:
        self.k = k

    def processes(self) -> int:
        return self.k

    def rank(self) -> int:
        return 0

    def scatter(self, array: Array, devices: Sequence[str]) -> list[Array]:
        return np.split(array, len(devices))

    def on_each_device(self, function: Callable[..., Any], *each: Any, examples: int) -> list[Any]:
        return [function(*arguments, examples) for arguments in zip(*each, strict=True)]

    def get_params(self, weights: Weights, device: str) -> Weights:
        return dict(weights)

    def split_batch(self, X: Array, y: Array, devices: Sequence[str]) -> Any:
        return self.scatter(X, devices), self.scatter(y, devices)

    def shard_loss_and_grad(self, params: Weights, X: Array, y: Array, examples: int) -> Any:
        assert len(X) * self.k == len(y) * self.k == examples
        return np.float32(0), params

    def train_batch(
        self,
        X: Array,
        y: Array,
        device_params: Sequence[Weights],
        devices: Sequence[str],
        lr: float,
        examples: int,
        allreduce: Callable[[Sequence[Any]], list[Any]],
    ) -> Any:
        loss, grad = self.shard_loss_and_grad(device_params[0], X, y, examples)
        for values in grad.values():
            allreduce([values])
        return allreduce([loss])[0]

    def synchronize(self, replicas: object) -> None:
        pass

    def by_schedule(self, schedule: Schedule, data: Sequence[Any]) -> list[Any]:
        assert (schedule.devices, len(data)) == (self.k, 1)
        return [self.k * data[0]]

    def native(self, data: Sequence[Any]) -> list[Any]:
        return [self.k * data[0]]

    def laboratory(self) -> Laboratory:
        own: Any = self
        unused: Any = None
        chapter = FromScratch(own, own, own, unused, unused, unused, self.synchronize, own)
        return Laboratory(chapter, ["numpy"], (self.k,))


def gather_of(k: int, of_others: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: [value, *[of_others(value)] * (k - 1)]


def measured(k: int, monkeypatch: pytest.MonkeyPatch) -> Measured:
    monkeypatch.setattr(lessons, "IMAGES", 2)
    hosts = tuple(f"n{number}" for number in range(k))
    process = Process(0, k, hosts=hosts, gather=gather_of(k, lambda value: value))
    task = Task("jax", 1, [20, 50], lambda _: None)
    return between.measured(task, NumPyProcess(k).laboratory(), process, 1)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_everything_is_measured_and_all_but_native_predicted(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = measured(k, monkeypatch)
    summed = [(each.entries, each.devices, each.algorithm) for each in found.compared]
    assert summed == [(n, k, name) for n in (20, 50) for name in ALLREDUCES]
    assert found.over
    assert [each.algorithm for each in found.over.steps] == list(ALLREDUCES)
    assert (len(found.over.hosts), found.over.machines) == (k, 1)
    both: list[Compared | Trained] = [*found.compared, *found.over.steps]
    for each in both:
        assert (each.predicted is None) == (each.in_turn is None) == (each.algorithm == "native")
        assert each.ratio() != 0
    for step in found.over.steps:
        assert step.predicted is None or step.predicted >= step.computing > 0


def test_a_step_is_predicted_to_compute_and_to_sum_one_tensor_after_the_other() -> None:
    seconds: dict[Timed, float] = {Step(10, ""): 1000, Step(10, "ring"): 1, Step(10, "native"): 1}
    taught = lessons.Lessons({}, 2, [9, 3, 1])
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

    monkeypatch.setattr(lessons, "IMAGES", 2)
    counting: Any = SimpleNamespace(by_schedule=by_schedule)
    lab = Laboratory(replace(scratch, collectives=counting), all_devices[:2], (2,), ("ring",))
    taught = lessons.lessons(lab, 2)
    for call in taught.calls.values():
        lab.once(call)
    assert sorted(summed) == sorted(taught.summed)


def test_it_is_kept_and_printed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(3, monkeypatch)
    cluster = as_measured(found)
    scaling = Scaling(measured=found, constants=cluster, simulated=simulate(cluster))
    path = tmp_path / "scaling.json"
    path.write_text(scaling.model_dump_json(by_alias=True))
    assert read_scaling(path) == scaling
    show(scaling, Console(file=(file := StringIO()), width=200))
    printed = file.getvalue()
    assert "devices of jax in 3 processes on 3 hosts, which share one machine, joined" in printed
    assert printed.count("allreduce of") == 2
    assert "a step of LeNet on 3 devices, 2 images for each" in printed
    assert "the second is nearer" in printed


def test_the_slowest_process_counts() -> None:
    process = Process(0, 2, gather=gather_of(2, lambda value: [2 * each for each in value]))
    assert between.slowest(process, [1.0, 2e-6]) == pytest.approx([2.0, 4e-6])


def test_a_signal_to_any_process_stops_all() -> None:
    process = Process(0, 2, gather=gather_of(2, lambda value: [False, True]))
    calls: dict[Timed, Call] = {Allreduce(1, 2, "star"): list}
    with pytest.raises(StoppedError, match="kept nothing"):
        between.timed(NumPyProcess(2).laboratory(), calls, process, 0)


@pytest.mark.only("pytorch", "jax")
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
    assert first[0].index("MEASURED") < first[0].index("a step of LeNet on 2 devices")
    over = read_scaling(tmp_path / "0" / "scaling.json").measured.over
    assert over
    assert over.machines == 1
    assert len(over.hosts) == 2
