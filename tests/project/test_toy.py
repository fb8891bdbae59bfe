"""A further chapter, and a further framework, are new files and one line in a list each."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests/support/toy"
FILES = {
    "chapter.py": "common/chapters/toy.py",
    "criteria.py": "common/compare/toy.py",
    "framework/__init__.py": "frameworks/toy/__init__.py",
    "framework/toy.py": "frameworks/toy/toy.py",
}
LINES = {
    "common/backends/frameworks.py": ('"mxnet")\n', '"mxnet", "toy")\n'),
    "common/chapters/chapters.py": ("(SCRATCH, CONCISE)", "(SCRATCH, CONCISE, TOY)"),
}
"""The line that changes in each list."""

IMPORT = "from common.chapters.toy import TOY\n"
PARITY = ["common.parity", "out", "--frameworks=toy", "--chapters=toy", "--suites=double"]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The project with one more chapter in one more framework."""
    for folder in ("common", "frameworks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for source, target in FILES.items():
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(TOY / source, tmp_path / target)
    for name, (line, longer) in LINES.items():
        text = (tmp_path / name).read_text()
        assert text.count(line) == 1
        (tmp_path / name).write_text(text.replace(line, longer))
    chapters = tmp_path / "common/chapters/chapters.py"
    chapters.write_text(chapters.read_text().replace("\n\nSPECS", f"\n{IMPORT}\nSPECS", 1))
    return tmp_path


def python(house: Path, module: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *flags]
    return subprocess.run(command, cwd=house, capture_output=True, text=True, check=False)


def train(house: Path, devices: int, **settings: str) -> None:
    flags = "--batch-size=7 --lr=0.1 --steps=5 --train-examples=40 --test-examples=20"
    more = [f"--devices={devices}", "--dtype=float64", "--dataset=synthetic", "--out=out/double"]
    done = python(house, "frameworks.toy.toy", *flags.split(), *more)
    assert done.returncode == 0, done.stderr
    assert "toy toy, preset book" in done.stderr


def test_a_chapter_and_a_framework_take_new_files_and_a_line_each(house: Path) -> None:
    for devices in (1, 2):
        train(house, devices)
    done = python(house, *PARITY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all " in done.stdout
    backend = house / "frameworks/toy/toy.py"
    backend.write_text(backend.read_text().replace("p.sum(axis=0) / len(X)", "p.sum(axis=0)"))
    for devices in (1, 2):
        train(house, devices)
    done = python(house, *PARITY)
    assert done.returncode == 1
    assert "FAILED gradient: toy toy on 1" in done.stdout + done.stderr


def test_its_flags_are_asked_for_and_its_name_is_known_everywhere(house: Path) -> None:
    assert "--gain N" in python(house, "frameworks.toy.toy", "--help").stdout
    for command in ("common.parity", "common.grid", "common.seeds"):
        assert "toy" in python(house, command, "--help").stdout, command
    done = python(house, "frameworks.toy.toy", "--device-kind=gpu", "--dataset=synthetic")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the toy sees no GPU here" in done.stderr
