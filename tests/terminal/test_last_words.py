"""What a command says when it fails: one line, whatever is in a name, and what to do."""

import pytest

from common.base.errors import RequestError, RunError
from common.terminal.command import Parser, status
from common.terminal.text import gist, storable


@pytest.mark.parametrize("kind", [RequestError, RunError])
def test_it_is_one_line_whatever_is_in_a_name(
    capsys: pytest.CaptureFixture[str], kind: type[RequestError]
) -> None:
    def work() -> None:
        raise kind("there is no é\n\x1b[2Ja\u202eb\udcff")

    assert status("command", work) == kind.status
    shown = r"é\n\x1b[2Ja\u202eb\udcff"
    assert capsys.readouterr().err == f"command: error: there is no {shown}\n"
    with pytest.raises(SystemExit, match="2"):
        Parser(prog="command").parse_args(["--a\nb"])
    assert capsys.readouterr().err == (
        "command: error: unrecognized arguments: --a\\nb (--help explains the flags)\n"
    )


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
