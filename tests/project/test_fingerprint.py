"""A record is stale exactly if code has changed that may change a number."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from common.records import fingerprint

ROOT = Path(__file__).parents[2]
HARMLESS = ("common/__init__.py", "common/terminal/", "frameworks/__init__.py")
"""Modules that a run loads and that change no number."""

LOADED = """
import json, sys
from common.backends.loading import backend
from common.training.cli import main
framework, *flags = sys.argv[1:]
status = [main(framework, name, flags) for name in ("scratch", "strategies")]
backend(framework, "concise")
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([status, [file for file in files if file]]))
"""
FLAGS = "--devices=1 --steps=1 --batch-size=4 --train-examples=4 --test-examples=4 --quiet"


def test_a_change_makes_records_stale_if_it_may_change_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    files = [f"common/{room}/some.py" for room in fingerprint.ROOMS]
    files += ["common/training/deeper/some.py", "frameworks/strategies/zero.py"]
    files += ["frameworks/jax/scratch.py"]
    others = ["common/report/page.py", "common/parity.py", "frameworks/mxnet/scratch.py"]
    for path in [*files, *others]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for path in [*files, *others]:
        before = fingerprint.source_digest("jax")
        (tmp_path / path).write_text("\n")
        assert (fingerprint.source_digest("jax") != before) == (path in files), path
    assert fingerprint.source_digest("jax") != fingerprint.source_digest("mxnet")


def test_all_that_runs_load_counts(framework: str, tmp_path: Path) -> None:
    flags = [*FLAGS.split(), "--dataset=synthetic", f"--out={tmp_path}"]
    command = [sys.executable, "-c", LOADED, framework, *flags]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    status, files = json.loads(done.stdout.splitlines()[-1])
    assert status == [0, 0]
    loaded = {str(path.relative_to(ROOT)) for path in map(Path, files) if ROOT in path.parents}
    counted = {str(path.relative_to(ROOT)) for path in fingerprint.sources(framework)}
    assert len(loaded & counted) > 20
    inside = {path for path in loaded if path.split("/")[0] in ("common", "frameworks")}
    assert [path for path in inside - counted if not path.startswith(HARMLESS)] == []
