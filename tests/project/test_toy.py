"""A further chapter and a further framework are new files, and a line in each list.

This chapter splits its weights, has momentum, and takes minibatches of any size.
"""

import shutil
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from safetensors.numpy import load_file

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

OWN = "part.velocities for part in parts"
FIRST = "{k: v * (part is parts[0]) for k, v in part.velocities.items()} for part in parts"
BUGS = {
    "momentum is forgotten": (1, "options.momentum * part.velocities[name] + step", "step"),
    "only the first device saves its velocity": (3, OWN, FIRST),
}


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


def python(house: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=house, capture_output=True, text=True, check=False)


def train(house: Path, devices: int, *flags: str) -> str:
    """Trains; returns what the run says."""
    more = [f"--devices={devices}", *flags]
    done = python(house, "-m", "frameworks.toy.toy", *FLAGS, *more)
    assert done.returncode == 0, done.stderr
    assert "toy toy, preset book" in done.stderr
    return done.stderr


def parity(house: Path, *flags: str) -> tuple[int, str]:
    """The exit status of the comparison, and what it prints."""
    done = python(house, "-m", *PARITY, *flags)
    return done.returncode, done.stdout + done.stderr


def plant(house: Path, right: str, wrong: str) -> None:
    backend = house / "frameworks/toy/toy.py"
    assert backend.read_text().count(right) == 1
    backend.write_text(backend.read_text().replace(right, wrong))


def kill_after_step_3(house: Path) -> Path:
    """Begins a run on 3 devices and kills it; where its checkpoint is."""
    flags = ["--devices=3", "--checkpoint-dir=kept", "--checkpoint-every=3"]
    assert python(house, "-c", KILLED, *FLAGS, *flags).returncode == -signal.SIGKILL
    (checkpoint,) = (house / "kept").glob("*.json")
    assert checkpoint.name == "toy-toy-columns-3dev-step3.json"
    return checkpoint


def test_a_chapter_and_a_framework_take_new_files_and_a_line_each(house: Path) -> None:
    for split, devices in product(SPLITS, (1, 2, 3)):
        train(house, devices, f"--split={split}")
    status, said = parity(house, *PLANNED)
    assert status == 0, said
    assert "all " in said
    table = python(house, "-m", "common.summary", RESULTS).stdout
    assert all(f"| toy {split} | 3 |" in table for split in SPLITS), table
    assert "--momentum M" in python(house, "-m", "frameworks.toy.toy", "--help").stdout
    train(house, 3, "--batch-size=2")  # smaller than the number of devices


@pytest.mark.parametrize(("devices", "right", "wrong"), BUGS.values(), ids=BUGS)
def test_a_bug_in_all_of_its_runs_is_seen(
    house: Path, devices: int, right: str, wrong: str
) -> None:
    plant(house, right, wrong)
    for number in (1, 3):
        train(house, number)
    status, said = parity(house)
    assert status == 1
    assert f"FAILED steps: toy toy on {devices}" in said


def test_a_killed_run_resumes_on_as_many_devices_and_on_others(house: Path) -> None:
    for split in SPLITS:
        train(house, 1, f"--split={split}")
    train(house, 3)
    whole = load_file(house / RESULTS / "toy-toy-columns-3dev.safetensors")
    checkpoint = kill_after_step_3(house)
    resume = ["--checkpoint-dir=kept", "--resume", "--checkpoint-every=3"]
    assert "resuming from kept/toy-toy-columns-3dev-step3.json" in train(house, 3, *resume)
    resumed = load_file(house / RESULTS / "toy-toy-columns-3dev.safetensors")
    assert {k: v.tobytes() for k, v in resumed.items()} == {
        k: v.tobytes() for k, v in whole.items()
    }
    train(house, 2, f"--resume-from={checkpoint}", "--split=reversed")
    status, said = parity(house)
    assert status == 0, said


def test_a_velocity_that_is_not_restored_is_seen(house: Path) -> None:
    plant(house, 'own.pop(f"momentum/{name}")', '0 * own.pop(f"momentum/{name}")')
    checkpoint = kill_after_step_3(house)
    for devices in (1, 2):
        train(house, devices, f"--resume-from={checkpoint}")
    status, said = parity(house)
    assert status == 1
    assert "FAILED steps: toy toy on 2" in said
