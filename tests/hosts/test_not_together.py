"""Processes that were not started alike, or not all of them, say so in a line each; none waits."""

import socket
import time

import pytest
from summing_chapter import SummingChapter, held
from together import COUNT, FLAGS, RECORD, SOON, Together, wait_until
from together_fixture import together as together

from common.hosts.launchers import NothingToDoError

HOST = socket.gethostname()
WAITS = "2 of 3 processes have come; waiting for 2\n"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (("--steps=8",), f"--steps is 8 on {HOST}, and 7 on {HOST}: start all processes alike"),
        (("--seed=9",), "--seed is 9 on "),
        (("--dtype=float32",), "--dtype is float32 on "),
        (("--allreduce=ring",), "allreduce='ring'"),
        (("--checkpoint-every=3", "--checkpoint-dir=kept"), "--checkpoint-every is 3 on "),
        (("--hosts=4", "--devices=4"), "is 4 on "),
        (("--checkpoint-dir=kept",), "--checkpoint-dir is given on "),
        (("--host-rank=1",), f"process 1 has come already, on {HOST}"),
    ],
)
def test_one_that_was_asked_otherwise_is_refused_and_the_others_go_on(
    together: Together, wrong: tuple[str, ...], why: str
) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: WAITS in runs[0].err())
    status, said = together.start(2, *wrong).ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert why in said
    runs.append(together.start(2))
    assert [run.ended()[0] for run in runs] == [0] * COUNT


def test_one_with_other_code_is_refused(together: Together) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: WAITS in runs[0].err())
    other = {"common.training.run.source_digest": lambda framework: "0" * 64}
    status, said = together.start(2, patches=other).ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert f"the project's code is 000000000000 on {HOST}, and " in said
    runs.append(together.start(2))
    assert [run.ended()[0] for run in runs] == [0] * COUNT


def test_flags_of_one_host_alone_may_differ(together: Together) -> None:
    runs = [together.start(0), together.start(1, "--quiet", "--threads=1")]
    runs.append(together.start(2, "--out=elsewhere", "--save-weights=w.safetensors"))
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    assert not (together.folder / "elsewhere").exists()


def test_those_that_do_not_come_in_time_are_named(together: Together) -> None:
    runs = [together.start(rank, "--join-timeout=2") for rank in (0, 1)]
    for run in runs:
        status, said = run.ended()
        assert status == 1
        assert "process 2 of 3 has not come in time: start all" in said.splitlines()[-1]


def test_a_first_process_that_does_not_come_in_time_is_named(together: Together) -> None:
    status, said = together.start(1, "--join-timeout=1").ended()
    assert (status, said.count("\n")) == (1, 1)
    where = f"localhost:{together.port}"
    assert f"process 1 on {HOST} cannot reach the first one at {where} (" in said
    assert ") within 1 seconds: start it" in said


def test_the_first_process_may_come_last(together: Together) -> None:
    runs = [together.start(2), together.start(1)]
    runs[0].process.join(0.5)
    runs.append(together.start(0))
    assert [run.ended()[0] for run in runs] == [0] * COUNT


def test_a_second_run_at_the_same_port_is_refused_and_the_first_goes_on(
    together: Together,
) -> None:
    runs = together.all(hurt={0: held("here")})
    wait_until((together.folder / "here").exists)
    status, said = together.start(0, "--out=second").ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert f"processes cannot meet at port {together.port} of this host" in said
    assert "name another one in --coordinator" in said
    status, said = together.start(1, "--out=second").ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert "process 1 has come already" in said
    assert all(run.process.is_alive() for run in runs)
    assert not (together.folder / "second").exists()


def test_a_port_serves_the_next_run_at_once(together: Together) -> None:
    for _ in range(2):
        runs = together.all("--quiet")
        assert [run.ended() for run in runs] == [(0, "")] * COUNT


@pytest.mark.parametrize("flag", ["--devices=4", "--batch-size=2", "--init-weights=none"])
def test_what_all_refuse_alike_is_said_by_the_first_before_others(
    together: Together, flag: str
) -> None:
    began = time.monotonic()
    runs = together.all(flag, patches={"common.training.run.LAUNCHER_TIMEOUT": SOON})
    status, said = runs[0].ended()
    assert (status, said.count("\n")) == (2, 1)
    assert time.monotonic() - began < SOON
    assert [run.process.is_alive() for run in runs[1:]] == [True, True]
    assert [run.err() for run in runs] == [said, "", ""]
    assert not (together.folder / "out").exists()


def test_what_another_one_alone_refuses_it_says(together: Together) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    status, said = together.start(2, "--init-weights=none").ended()
    assert (status, said.count("\n")) == (2, 1), said
    assert "error: cannot read weights from none" in said
    runs.append(together.start(2))
    assert [run.ended()[0] for run in runs] == [0] * COUNT


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
