"""A further chapter and a further framework are new files, and a line in each list.

This chapter splits its weights, has momentum, and takes minibatches of any size.
"""

import signal
from itertools import product
from pathlib import Path

import pytest
from safetensors.numpy import load_file
from toy_house import FLAGS, KILLED, PARITY, PLANNED, RESULTS, SPLITS, house as house, python

OWN = "part.velocities for part in parts"
FIRST = "{k: v * (part is parts[0]) for k, v in part.velocities.items()} for part in parts"
BUGS = {
    "momentum is forgotten": (1, "options.momentum * part.velocities[name] + step", "step"),
    "only the first device saves its velocity": (3, OWN, FIRST),
}


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
