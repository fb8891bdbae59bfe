"""Processes that a launcher has started train as one."""

import json
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from summing_chapter import SummingChapter, from_step, held
from together import COUNT, FLAGS, RECORD, Together, record, together as together, wait_until

from common.backends.loading import import_backend
from common.records.store import read_record, read_tensors

KEPT = ("--steps=60", "--checkpoint-dir=kept", "--checkpoint-every=20")


def numbers(path: Path) -> tuple[Any, ...]:
    """All that a run has computed, to the bit."""
    record = read_record(path)
    tensors = read_tensors(path, record)
    accuracies = [each.test_accuracy for each in record.epochs]
    return record.losses, accuracies, {name: tensors[name].tobytes() for name in sorted(tensors)}


def test_three_processes_compute_what_one_does_and_the_first_one_speaks(
    together: Together,
) -> None:
    runs = together.all("--devices=6", "--steps=7")
    assert [run.ended()[0] for run in runs] == [0] * COUNT, [run.err() for run in runs]
    assert "test acc" in runs[0].out()
    assert [run.out() + run.err() for run in runs[1:]] == ["", ""]
    path = together.folder / "out" / "pytorch-scratch-6dev.json"
    record, host = read_record(path), socket.gethostname()
    assert record.status == "complete"
    assert record.devices == [f"{host} cpu:{index}" for index in range(6)]
    assert record.cluster
    assert record.cluster.launcher == "by hand"
    assert record.cluster.hosts == [host] * COUNT
    alone = together.command([*FLAGS, "--out=alone", "--devices=6", "--steps=7"], SummingChapter())
    assert alone.ended()[0] == 0
    assert numbers(path) == numbers(together.folder / "alone" / path.name)


@pytest.mark.parametrize(
    ("rank", "number", "status"), [(0, signal.SIGINT, 130), (1, signal.SIGUSR1, 143)]
)
def test_a_signal_stops_all_after_the_same_step_and_they_resume(
    together: Together, rank: int, number: signal.Signals, status: int
) -> None:
    runs = together.all(*KEPT, hurt={rank: from_step(5, number, os.getppid)})
    ends = [run.ended() for run in runs]
    assert ends[rank][0] == status, ends
    assert {end for end, _ in ends} <= {status, 143}
    written = json.loads((together.folder / RECORD).read_text())
    assert written["status"] == "interrupted"
    stopped = re.search(r"after step (\d+) of 60, and --resume continues from there", ends[0][1])
    assert stopped
    step = int(stopped[1])
    assert 4 <= step < 60
    again = together.all(*KEPT, "--resume")
    assert [run.ended()[0] for run in again] == [0] * COUNT, [run.err() for run in again]
    assert f"resuming from kept/pytorch-scratch-3dev-step{step}.json" in again[0].err()
    alone = together.command([*FLAGS, "--out=alone", "--steps=60"], SummingChapter())
    assert alone.ended()[0] == 0
    assert numbers(together.folder / RECORD) == numbers(together.folder / "alone" / RECORD.name)


def test_a_signal_to_everybody_before_the_first_step_stops_all(together: Together) -> None:
    """Slurm signals all processes of a job, also those of a supervisor."""
    load = import_backend

    def asked(*given: Any) -> Any:
        for each in (os.getppid(), os.getpid()):
            os.kill(each, signal.SIGTERM)
        return load(*given)

    runs = together.all("--steps=600", patches={"common.training.run.import_backend": asked})
    for run in runs:
        status, said = run.ended()
        assert (status, "stopped after step" in said) == (143, True), said
    assert record(together) == ("interrupted", "")


def test_a_second_signal_ends_all_at_once(together: Together) -> None:
    runs = together.all(hurt={1: held("here")})
    wait_until((together.folder / "here").exists)
    while runs[1].process.is_alive():  # two that come at the same time are one
        runs[1].send(signal.SIGINT)
        time.sleep(0.1)
    assert runs[1].ended()[0] == -signal.SIGINT
    for run in (runs[0], runs[2]):
        status, said = run.ended()
        assert status == 1
        assert f"process 1 on {socket.gethostname()} is gone" in said
