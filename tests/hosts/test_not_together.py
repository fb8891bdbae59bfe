"""Processes that were not started alike, or not all of them, say so in a line each; none waits."""

import shutil
import socket
import time
from dataclasses import replace
from typing import Any

import pytest
from summing_chapter import SummingChapter, held
from together import COUNT, FLAGS, RECORD, SOON, Together, together as together, wait_until

from common.backends.devices import Process
from common.data.dataset import Dataset, load
from common.hosts.launchers import Launched, NothingToDoError

HOST = socket.gethostname()
WAITS = "2 of 3 processes have come; waiting for 2\n"


@pytest.mark.parametrize(
    ("wrong", "digest", "why"),
    [
        (("--steps=8",), "", f"--steps is 8 on {HOST}, and 7 on {HOST}: start all processes alike"),
        (("--checkpoint-dir=kept",), "", "--checkpoint-dir is given on "),
        (("--host-rank=1",), "", f"process 1 has come already, on {HOST}"),
        (("--init-weights=none",), "", "error: cannot read weights from none"),
        ((), "0" * 64, f"the project's code is 000000000000 on {HOST}, and "),
    ],
)
def test_one_that_was_asked_otherwise_is_refused_and_the_others_wait_on(
    together: Together, wrong: tuple[str, ...], digest: str, why: str
) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: WAITS in runs[0].err())
    other = {"common.training.run.source_digest": lambda framework: digest} if digest else {}
    status, said = together.start(2, *wrong, patches=other).ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert why in said
    # Flags of one host alone may differ.
    runs.append(together.start(2, "--out=elsewhere", "--save-weights=w", "--threads=1"))
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    assert not (together.folder / "elsewhere").exists()


def require_refused(runs: list[Any], *words: str) -> None:
    for run in runs:
        status, said = run.ended()
        assert (status, said.count("\n")) == (2, 1), said
        assert all(each in said for each in words), said


def test_a_folder_of_checkpoints_that_hosts_do_not_share_is_refused(together: Together) -> None:
    flags = ["--quiet", "--checkpoint-every=2", "--steps=4"]
    runs = together.all(*flags, "--checkpoint-dir=kept")
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    shutil.rmtree(together.folder / "out")
    places = ["kept", "own", "own"]
    again = [
        together.start(rank, *flags, "--resume", f"--checkpoint-dir={place}")
        for rank, place in enumerate(places)
    ]
    said = "does not have the checkpoint of the first one ("
    require_refused(again, said, "): all hosts have to share --checkpoint-dir\n")


def test_hosts_with_different_numbers_of_processes_are_refused(together: Together) -> None:
    runs = [together.start(rank, "--quiet") for rank in (0, 1)]
    runs.append(together.start(2, "--quiet", patches={"socket.gethostname": lambda: "n2"}))
    require_refused(runs, "start the same number on each host")


def test_other_data_on_one_host_are_refused(together: Together) -> None:
    def other(*given: Any, **named: Any) -> Dataset:
        data = load(*given, **named)
        return replace(data, train_labels=data.train_labels[::-1])

    runs = [together.start(rank, "--quiet") for rank in (0, 1)]
    runs.append(together.start(2, "--quiet", patches={"common.training.run.load": other}))
    said = f"process 2 on {HOST} does not have the data of the first one (synthetic "
    require_refused(runs, said, "all hosts need the same data set, see --dataset and --data-dir\n")


def test_other_initial_weights_on_one_host_are_refused(together: Together) -> None:
    assert together.command([*FLAGS, "--save-weights=w"], SummingChapter()).ended()[0] == 0
    runs = [together.start(rank, "--quiet") for rank in (0, 1)]
    runs.append(together.start(2, "--quiet", "--init-weights=w"))
    said = f"process 2 on {HOST} does not have the initial weights of the first one ("
    require_refused(runs, said)


def test_those_that_do_not_come_in_time_are_named(together: Together) -> None:
    runs = [together.start(rank, "--join-timeout=2") for rank in (0, 1)]
    for run in runs:
        status, said = run.ended()
        assert status == 1
        assert "process 2 of 3 did not start in time: start all" in said.splitlines()[-1]


def test_a_first_process_that_does_not_come_in_time_is_named(together: Together) -> None:
    status, said = together.start(1, "--join-timeout=1").ended()
    assert (status, said.count("\n")) == (1, 1)
    where = f"localhost:{together.port}"
    assert f"process 1 on {HOST} cannot reach the first process at {where} (" in said
    assert ") within 1 seconds: start it" in said


def test_one_that_waits_by_variables_of_another_job_says_whose_they_are(together: Together) -> None:
    here = Launched("TF_CONFIG", Process(0, 3), ("localhost", together.port))
    run = together.start(0, patches={"common.training.run.launched": lambda *_: here})
    wait_until(lambda: "\n" in run.err())
    assert run.err().splitlines()[0] == (
        "1 of 3 processes have come; waiting for 1, 2, as the environment says "
        "(TF_CONFIG); --launcher none ignores it"
    )


def test_the_first_process_may_come_last(together: Together) -> None:
    runs = [together.start(2), together.start(1)]
    runs[0].process.join(0.5)
    runs.append(together.start(0))
    assert [run.ended()[0] for run in runs] == [0] * COUNT


def test_a_second_run_at_the_same_port_is_refused_and_the_first_continues(
    together: Together,
) -> None:
    runs = together.all(hurt={0: held("here")})
    wait_until((together.folder / "here").exists)
    said = f"processes cannot connect at port {together.port} of this host"
    again = together.start(0, "--out=second")
    require_refused([again], said, "name another one in --coordinator")
    require_refused([together.start(1, "--out=second")], "process 1 has come already")
    assert all(run.process.is_alive() for run in runs)
    assert not (together.folder / "second").exists()


def test_what_all_refuse_alike_is_said_by_the_first_before_others(together: Together) -> None:
    began = time.monotonic()
    runs = together.all("--devices=4", patches={"common.training.run.LAUNCHER_TIMEOUT": SOON})
    require_refused(runs[:1], "4 devices cannot be shared by 3 hosts")
    assert time.monotonic() - began < SOON
    assert [run.err() for run in runs[1:]] == ["", ""]
    assert not (together.folder / "out").exists()


def test_a_process_that_has_nothing_to_do_says_why(together: Together) -> None:
    def launched(*_: object) -> None:
        raise NothingToDoError("others do it")

    patches = {"common.training.run.launched": launched}
    started = together.command([*FLAGS], SummingChapter(), patches)
    assert started.ended() == (0, "others do it\n")
    assert not (together.folder / RECORD).exists()


def test_a_run_that_never_was_leaves_the_record_of_another_as_it_was(together: Together) -> None:
    # Each host would have had two devices, as one alone has: all together have six.
    alone = together.command([*FLAGS[1:]], SummingChapter())
    assert alone.ended()[0] == 0
    before = {path: path.read_bytes() for path in (together.folder / "out").iterdir()}
    place = [f"--coordinator=localhost:{together.port}", "--hosts=3", "--host-rank=0"]
    late = together.command([*FLAGS[1:], *place, "--join-timeout=1"], SummingChapter())
    assert late.ended()[0] == 1
    assert {path: path.read_bytes() for path in (together.folder / "out").iterdir()} == before
