"""What the worker of one process says, all say, with the process and its host."""

import socket

import pytest
from together import RECORD, Together, require_told
from together_fixture import together as together

from common.base.errors import RequestError, RunError
from common.records.store import read_record

HOST = socket.gethostname()


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (RunError("it was planted", step=3), 1, "it was planted"),
        (RequestError("ask otherwise"), 2, "ask otherwise"),
        (MemoryError(), 1, "a process failed: MemoryError"),
    ],
)
def test_what_a_worker_says_all_say(
    together: Together, rank: int, error: Exception, status: int, said: str
) -> None:
    def hurt(step: int) -> None:
        if step == 3:
            raise error

    runs = together.all("--quiet", hurt={rank: hurt})
    own = runs.pop(rank)
    require_told(runs, f"error: process {rank} on {HOST}: {said}", status=status)
    found, words = own.ended()
    assert (found, words.partition("error: ")[2].split(";")[0].strip()) == (status, said)
    left = read_record(together.folder / RECORD)
    assert left.status == "failed"
    failure = left.failure
    assert failure
    assert failure.message.endswith(said)
    assert "raise error" in failure.traceback
