"""What a command says when it fails: one line, whatever is in a name, and what to do."""

import pytest

from common.base.errors import RequestError, RunError
from common.terminal.command import Parser, status
from common.terminal.text import gist, storable

ADVICE = "; free some, or ask for less at a time"


def said(capsys: pytest.CaptureFixture[str], error: BaseException) -> tuple[int, str]:
    """The status and the words of a command that ends so."""

    def work() -> None:
        raise error

    found = status("command", work)
    return found, capsys.readouterr().err


@pytest.mark.parametrize("kind", [RequestError, RunError])
def test_it_is_one_line_whatever_is_in_a_name(
    capsys: pytest.CaptureFixture[str], kind: type[RequestError]
) -> None:
    found, line = said(capsys, kind("there is no é\n\x1b[2Ja\u202eb\udcff"))
    shown = r"é\n\x1b[2Ja\u202eb\udcff"
    assert (found, line) == (kind.status, f"command: error: there is no {shown}\n")
    with pytest.raises(SystemExit, match="2"):
        Parser(prog="command").parse_args(["--a\nb"])
    assert capsys.readouterr().err == (
        "command: error: unrecognized arguments: --a\\nb (--help explains the flags)\n"
    )


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        RuntimeError("INTERNAL: Out of memory allocating 9 bytes.\nmore"),
        RunError("a process failed: RuntimeError: std::bad_alloc"),
        ValueError("OOM when allocating tensor with shape[9]"),
    ],
)
def test_too_little_memory_has_a_remedy(
    capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    found, line = said(capsys, error)
    assert found == 1
    assert line.startswith("command: error: ")
    assert line.endswith(f"{ADVICE}\n")
    assert line.count("\n") == 1


def test_what_has_no_memory_in_it_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    for error in (RunError("the loss is nan"), ValueError("no memory layout of that name")):
        assert ADVICE not in said(capsys, error)[1]


def test_an_error_that_tells_a_whole_traceback_is_told_by_its_end() -> None:
    told = 'Traceback (most recent call last):\n  File "a.cc", line 9\nError: no such operator\n'
    assert gist(told) == "Error: no such operator"
    assert gist("Graph execution error:\n\nDetected at node 9\n out of memory") == "out of memory"
    assert gist("\nfirst\nsecond\n") == "first"
    assert gist(" \n") == "no reason given"
    assert (
        gist("terminate called after throwing\n  what():  no such file\nAborted") == "no such file"
    )


def test_what_is_no_text_can_be_stored() -> None:
    assert storable("a\udcffé\n") == "a\\udcffé\n"
