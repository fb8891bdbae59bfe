"""The page has the output of every case, with the versions that it names."""

import pytest
from started import ROOT, python

from silent.report import report

PAGE = (ROOT / "docs/silent.md").read_text(encoding="utf-8")
CASES = sorted(case.stem for case in (ROOT / "silent").glob("[!_]*_*.py"))
AS_FILE = "pytorch_copies"
"""It is run as an editor does, too."""

COMMANDS = [*((case, f"-m silent.{case}") for case in CASES), (AS_FILE, f"silent/{AS_FILE}.py")]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param(*command, marks=pytest.mark.only(command[0].partition("_")[0]))
        for command in COMMANDS
    ],
)
def test_the_page_has_what_a_case_prints(case: str, words: str) -> None:
    done = python(*words.split())
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert f"```\n$ python -m silent.{case}\n{done.stdout}```\n" in PAGE


def test_the_page_has_every_case_once() -> None:
    named = [line.rpartition(".")[2] for line in PAGE.splitlines() if line.startswith("$ ")]
    assert sorted(named) == CASES


def test_a_mended_version_and_a_wrong_remedy_are_errors() -> None:
    lines = "split: this version gets it right.*\ninstead: a loop: this version gets it wrong, too"
    with pytest.raises(SystemExit, match=f"^{lines}; change docs/silent.md$"):
        report("it 1.0", 2, {"fit": 3, "split": 2}, {"a loop": float("nan")})
