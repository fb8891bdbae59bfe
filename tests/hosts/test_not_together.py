"""Processes that are missing or were started differently say so in a line each."""

import shutil
import socket
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import pytest
from together import COUNT, Started, Together, together as together, wait_until

from common.data.dataset import Dataset, load
from common.hosts.supervise import channel_by

HOST = socket.gethostname()
WAITS = "2 of 3 processes have come; waiting for 2\n"


@pytest.mark.parametrize(
    ("wrong", "digest", "why"),
    [
        (("--steps=8",), "", f"--steps is 8 on {HOST}, and 7 on {HOST}: start all processes alike"),
        (("--host-rank=1",), "", f"process 1 has come already, on {HOST}"),
        ((), "0" * 64, f"the project's code is 000000000000 on {HOST}, and "),
    ],
)
def test_one_that_was_asked_otherwise_is_refused_and_the_others_wait_on(
    together: Together, wrong: tuple[str, ...], digest: str, why: str
) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: WAITS in runs[0].err())
    other = {"common.training.run.source_digest": lambda framework: digest} if digest else {}
    require_refused([together.start(2, *wrong, patches=other)], why)
    # Flags of one host alone may differ.
    runs.append(together.start(2, "--out=elsewhere", "--save-weights=w", "--threads=1"))
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    assert not (together.folder / "elsewhere").exists()


def require_refused(runs: list[Started], *words: str) -> None:
    for run in runs:
        status, said = run.ended()
        assert (status, said.count("\n")) == (2, 1), said
        assert all(each in said for each in words), said


def test_a_folder_of_checkpoints_that_hosts_do_not_share_is_refused(together: Together) -> None:
    flags = ["--quiet", "--checkpoint-every=2", "--steps=4"]
    runs = together.all(*flags, "--checkpoint-dir=kept")
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    shutil.rmtree(together.folder / "out")
    again = [
        together.start(rank, *flags, "--resume", f"--checkpoint-dir={place}")
        for rank, place in enumerate(["kept", "own", "own"])
    ]
    said = "has the checkpoint none, and the first one the checkpoint "
    require_refused(again, said, ": all hosts need the same --checkpoint-dir\n")


def other_data(*given: Any, **named: Any) -> Dataset:
    data = load(*given, **named)
    return replace(data, train_labels=data.train_labels[::-1])


@pytest.mark.parametrize(
    ("patches", "why"),
    [
        ({"socket.gethostname": lambda: "n2"}, "start the same number on each host"),
        (
            {"common.training.run.load": other_data},
            f"process 2 on {HOST} has the data synthetic ",
        ),
    ],
)
def test_another_host_that_is_not_as_the_first_ends_all(
    together: Together, patches: dict[str, Any], why: str
) -> None:
    runs = [together.start(rank, "--quiet") for rank in (0, 1)]
    require_refused([*runs, together.start(2, "--quiet", patches=patches)], why)


NONSENSE: Final = (b"", b"GET / HTTP/1.1\r\nHost: n0\r\n\r\n", b"\x7f\xff\xff\xff", b"\0\0\0\x02{}")
"""One says nothing, another one that two gigabytes follow."""

MESSAGES: Final = (b'{"rank": [2], "asked": {}}', b'{"ended": null}', b"[" * 100_000, b"\x80.")


def test_a_stranger_that_talks_nonsense_does_no_harm(together: Together) -> None:
    runs = [together.start(rank) for rank in (0, 1)]
    wait_until(lambda: WAITS in runs[0].err())
    where = "localhost", together.port
    with ExitStack() as stack:
        for said in NONSENSE:
            stack.enter_context(socket.create_connection(where)).sendall(said)
        for said in MESSAGES:
            channel = channel_by(socket.create_connection(where))
            stack.enter_context(channel.connection).send_bytes(said)
        runs.append(together.start(2))
        assert [run.ended()[0] for run in runs] == [0] * COUNT


def test_a_second_run_at_the_same_port_is_refused(together: Together) -> None:
    runs = [together.start(0)]
    wait_until(lambda: "1 of 3" in runs[0].err())
    said = f"processes cannot connect at port {together.port} of this host"
    again = together.start(0, "--out=second")
    require_refused([again], said, "name another one in --coordinator")
    runs += [together.start(rank) for rank in (1, 2)]
    assert [run.ended()[0] for run in runs] == [0] * COUNT
    assert not (together.folder / "second").exists()
