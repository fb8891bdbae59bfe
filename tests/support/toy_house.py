"""The project with one more chapter in one more framework: new files, and a line in each list."""

import os
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
    "framework/chapters.py": "frameworks/toy/chapters.py",
    "framework/toy.py": "frameworks/toy/toy.py",
}
LINES = {
    "common/backends/frameworks.py": ('"mxnet")\n', '"mxnet", "toy")\n'),
    "common/chapters/chapters.py": ("(SCRATCH, CONCISE, SPLIT)", "(SCRATCH, CONCISE, SPLIT, TOY)"),
    "common/compare/criteria.py": ("CRITERIA,\n}", 'CRITERIA,\n    "toy": toy.CRITERIA,\n}'),
}
"""The line that changes in each list."""

IMPORTS = {
    "common/chapters/chapters.py": "from common.chapters.toy import TOY\n",
    "common/compare/criteria.py": "from common.compare import toy\n",
}

SPLITS = ("columns", "reversed")
PARITY = ["common.parity", "out", "--frameworks=toy", "--chapters=toy"]
PLANNED = ["--suites", *(f"float64-{split}" for split in SPLITS)]
SETTING = "--batch-size=7 --lr=0.1 --steps=5 --train-examples=40 --test-examples=20"
RESULTS = "out/float64"
FLAGS = [*SETTING.split(), "--dtype=float64", "--dataset=synthetic", f"--out={RESULTS}"]

KILLED = """
import os, signal, sys
from common.training import cli, checkpoints

write = checkpoints.Checkpoints.write

def killed(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

checkpoints.Checkpoints.write = killed
cli.main("toy", "toy", sys.argv[1:])
"""
"""Runs the chapter until its first checkpoint is written."""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The project with one more chapter in one more framework."""
    for folder in ("common", "frameworks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for source, target in FILES.items():
        (tmp_path / target).parent.mkdir(exist_ok=True)
        shutil.copy(TOY / source, tmp_path / target)
    for name, (line, longer) in LINES.items():
        text = (tmp_path / name).read_text()
        assert text.count(line) == 1
        (tmp_path / name).write_text(text.replace(line, longer))
    for name, line in IMPORTS.items():
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace("from common", f"{line}from common", 1))
    return tmp_path


def python(house: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What Python does there, with these variables beside those that are there."""
    command, env = [sys.executable, *words], {**os.environ, **variables}
    return subprocess.run(command, cwd=house, env=env, capture_output=True, text=True, check=False)
