"""Processes that find other data, weights or checkpoints on their hosts do not train together."""

import shutil
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from summing_chapter import SummingChapter
from together import COUNT, FLAGS, Together, wait_until
from together_fixture import together as together

from common.data.dataset import Dataset, load

HOST = socket.gethostname()


@pytest.mark.parametrize("own", [0, 2])
def test_a_folder_of_checkpoints_that_hosts_do_not_share_is_refused(
    together: Together, own: int
) -> None:
    flags = ["--quiet", "--checkpoint-every=2"]
    runs = together.all(*flags, "--checkpoint-dir=kept", "--steps=4")
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    shutil.rmtree(together.folder / "out")
    again = [
        together.start(
            rank,
            *flags,
            "--resume",
            "--steps=4",
            f"--checkpoint-dir={'kept' if own == rank else 'own'}",
        )
        for rank in range(COUNT)
    ]
    for run in again:
        status, said = run.ended()
        assert (status, said.count("\n")) == (2, 1), said
        assert "does not have the checkpoint of the first one (" in said
        assert said.endswith("): all hosts have to share --checkpoint-dir\n")


def test_other_data_on_one_host_are_refused(together: Together) -> None:
    def other(*given: Any, **named: Any) -> Dataset:
        data = load(*given, **named)
        return replace(data, train_labels=data.train_labels[::-1])

    patches = {"common.training.run.load": other}
    flags = ["--quiet"]
    runs = [together.start(rank, *flags) for rank in (0, 1)]
    runs.append(together.start(2, *flags, patches=patches))
    for run in runs:
        status, said = run.ended()
        assert (status, said.count("\n")) == (2, 1), said
        assert f"process 2 on {HOST} does not have the data of the first one (synthetic " in said
        assert said.endswith("all hosts need the same data set, see --dataset and --data-dir\n")


def test_other_initial_weights_on_one_host_are_refused(together: Together) -> None:
    assert together.command([*FLAGS, "--save-weights=w"], SummingChapter()).ended()[0] == 0
    runs = [together.start(0, "--quiet"), together.start(1), together.start(2, "--init-weights=w")]
    for run in runs:
        status, said = run.ended()
        assert status == 2
        assert f"process 2 on {HOST} does not have the initial weights of the first one (" in said


def test_who_waits_for_the_first_one_to_refuse_was_not_stopped(together: Together) -> None:
    def wait(seconds: float) -> None:
        Path("waits").touch()
        time.sleep(100 * seconds)

    patches = {"common.training.run.time": SimpleNamespace(sleep=wait)}
    run = together.start(1, "--devices=4", patches=patches)
    wait_until((together.folder / "waits").exists)
    run.send(signal.SIGTERM)  # as a launcher does once the first one has ended
    assert run.ended() == (2, "")
