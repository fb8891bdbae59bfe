"""What a page says that frameworks get wrong is what they get wrong, in the versions it names."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/silent.md").read_text(encoding="utf-8")
CASES = {
    case.stem: framework
    for framework in FRAMEWORKS
    for case in sorted((ROOT / "silent").glob(f"{framework}_*.py"))
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.only(name)) for case, name in CASES.items()]
)
def test_the_page_has_what_a_case_prints(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"silent.{case}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert f"```\n$ python -m silent.{case}\n{done.stdout}```\n" in PAGE


def test_the_page_has_every_case_once() -> None:
    named = [line.rpartition(".")[2] for line in PAGE.splitlines() if line.startswith("$ ")]
    assert sorted(named) == sorted(CASES)
