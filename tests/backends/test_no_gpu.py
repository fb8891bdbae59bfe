"""GPUs that are asked for and are not there end a run with one line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_gpus_that_are_not_there_are_an_error(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    flags = ["--device-kind=gpu", "--dataset=synthetic", "--quiet", f"--out={tmp_path}"]
    command = [sys.executable, "-m", f"frameworks.{framework}.scratch", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    line = r"python -m .*: error: .* sees no GPU here: .*--device-kind cpu does without\n"
    assert re.fullmatch(line, done.stderr), done.stderr
    assert not list(tmp_path.iterdir())
