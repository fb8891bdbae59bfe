"""A record is stale as soon as code has changed that may move a number, and not before."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.records import fingerprint

ROOT = Path(__file__).parents[2]
HARMLESS = ("common/__init__.py", "common/terminal/", "frameworks/__init__.py")
"""What a run loads besides, which moves no number: it parses flags, and prints."""

LOADED = """
import json, sys
from common.training.cli import main
framework, *flags = sys.argv[1:]
status = [main(framework, "scratch", flags), main(framework, "concise", [*flags, "--width=1"])]
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([status, [file for file in files if file]]))
"""
FLAGS = "--devices=1 --steps=1 --batch-size=4 --train-examples=4 --test-examples=4 --quiet"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, of which the digest is taken."""
    for folder in ("common", "frameworks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "stale"),
    [
        ("common/base/arrays.py", True),
        ("common/data/minibatches.py", True),
        ("common/models/nets.py", True),
        ("common/parallel/shards.py", True),
        ("common/backends/devices.py", True),
        ("common/hosts/hub.py", True),
        ("common/chapters/concise.py", True),
        ("common/settings/config.py", True),
        ("common/records/trace.py", True),
        ("common/training/loop.py", True),
        ("frameworks/jax/scratch.py", True),
        ("frameworks/mxnet/scratch.py", False),
        ("common/report/page.py", False),
        ("common/report/templates/parity.html", False),
        ("common/compare/tolerances.py", False),
        ("common/parity.py", False),
    ],
)
def test_a_change_makes_records_stale_if_it_may_move_a_number(
    house: Path, path: str, stale: bool
) -> None:
    before = fingerprint.source_digest("jax")
    (house / path).write_text((house / path).read_text() + "\n")
    assert (fingerprint.source_digest("jax") != before) == stale


def test_a_new_file_in_a_new_folder_counts(house: Path) -> None:
    before = fingerprint.source_digest("jax")
    (house / "common/training/deeper").mkdir()
    (house / "common/training/deeper/new.py").touch()
    assert fingerprint.source_digest("jax") != before


def test_all_that_runs_load_counts(framework: str, tmp_path: Path) -> None:
    flags = [*FLAGS.split(), "--dataset=synthetic", f"--out={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, framework, *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    status, files = json.loads(done.stdout.splitlines()[-1])
    assert status == [0, 0]
    assert uncounted(files, framework) == []


def uncounted(files: Any, framework: str) -> list[str]:
    """The files of the project that a run loads without that its digest knows of them."""
    own = {str(path.relative_to(ROOT)) for path in map(Path, files) if ROOT in path.parents}
    counted = {str(path.relative_to(ROOT)) for path in fingerprint.sources(framework)}
    assert len(own & counted) > 20
    inside = {path for path in own if path.split("/")[0] in ("common", "frameworks")}
    return sorted(path for path in inside - counted if not path.startswith(HARMLESS))


def test_frameworks_have_digests_of_their_own() -> None:
    assert len({fingerprint.source_digest(name) for name in FRAMEWORKS}) == len(FRAMEWORKS)
