"""`python -m common.judge` and `check`: what they say of code, also if it cannot be judged."""

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from started import python

from common.judge import check
from common.judge.judgement import TEXTS, judge

SAID = {
    "": (2, "has no allreduce: name another one as"),
    "def allreduce(data:": (2, "SyntaxError: '(' was never closed"),
    "def allreduce(data, k): pass": (2, "TypeError: allreduce() missing 1 required"),
    "def allreduce(data):\n    return data[9]": (2, "IndexError: list index out of range (line 2)"),
    "def allreduce(data):\n    while True: pass": (2, "size 1, float64: no answer after 5 seconds"),
    "def allreduce(data):\n    yield data": (2, "of type generator, where a list is due"),
    "import os\ndef allreduce(data):\n    os._exit(0)": (2, "float64: the code ended its process"),
    "def allreduce(data):\n    print(data)\n    return data": (1, "wrong: at 2 devices, size 1"),
    TEXTS["allreduce"]["protocol"].partition("\n\n")[2]: (0, "right: every device gets the sum"),
}


@pytest.mark.parametrize(("code", "status", "text"), [(k, *v) for k, v in SAID.items()])
def test_a_command_says_it_in_a_line_or_three(
    code: str, status: int, text: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(dedent(code))
    done = python("-m", "common.judge", "allreduce", tmp_path / "mine.py", "--timeout", "5")
    line = done.stderr if status == 2 else done.stdout
    assert (done.returncode, done.stdout + done.stderr) == (status, line)
    assert text in line
    assert line.count("\n") == (1 if status == 2 else 3)
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.py"]


def test_the_examples_of_help_are_right() -> None:
    for kind in ("allreduce", "schedule", "pipeline", "layer"):  # the others need PyTorch
        names: dict[str, Any] = {}
        exec(dedent(TEXTS[kind]["protocol"].partition("\n\n")[2]), names)
        assert judge(kind, names[kind]).right
    shown = python("-m", "common.judge", "step", "--help").stdout
    assert TEXTS["step"]["protocol"] in shown


def test_a_notebook_asks_for_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    def allreduce_schedule(k: int) -> list[Any]:
        return [] if k == 1 else 1 / 0  # type: ignore[return-value]

    check(allreduce_schedule)
    assert capsys.readouterr().out.startswith("not judged: at 2 devices: ZeroDivisionError")
    check(print)
    said = f"not judged: say which kind it is: kind= is one of {', '.join(TEXTS)}\n"
    assert capsys.readouterr().out == said


@pytest.mark.only("pytorch")
def test_the_script_of_a_page_is_wrong_and_then_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/porting.md").read_text()
    script, wrong, mend, right = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[
        :4
    ]
    mended = script.replace(mend.splitlines(keepends=True)[0], mend)
    for code, text in ((script, wrong), (mended, right)):
        (tmp_path / "mine.py").write_text(code)
        assert python("-m", "common.judge", "step", tmp_path / "mine.py").stdout.startswith(text)
