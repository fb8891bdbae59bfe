"""Names that few files have: whatever they are, a run keeps to them, and a message is one line."""

import os
from pathlib import Path

import pytest
from figures import Figures
from hurt_runs import NAME, Hurt, require_tidy

from common.models.weights_file import load_arrays
from common.records.store import read_record, read_tensors

pytestmark = pytest.mark.faults

NAMES = {
    "spaces": "  a  b ",
    "quotes": "'a\"b`c$HOME\\",
    "the end of a line": "a\nb\r\n",
    "a dash": "-rf",
    "two dashes": "--out=x",
    "a pattern": "[a]*?{b}",
    "a format": "%s%(x)d{0}[red]",
    "controls": "\x1b[2J\x07\t",
    "right to left": "a\u202eb",
    "255 bytes": "x" * 255,
    "254 bytes of UTF-8": "é" * 127,
    "bytes that are no UTF-8": os.fsdecode(b"a\xff\xfe"),
    "dots": "...",
    "the end of another file": "a.json",
}
FLAGS = ("out", "checkpoint-dir", "save-weights", "init-weights", "resume-from", "data-dir")


@pytest.fixture(params=list(NAMES.values()), ids=list(NAMES))
def name(request: pytest.FixtureRequest) -> str:
    """A name that a folder or a file can have."""
    found: str = request.param
    return found


@pytest.fixture
def here(hurt: Hurt) -> Hurt:
    """Runs below the working directory."""
    hurt.monkeypatch.chdir(hurt.folder)
    return hurt


def test_folders_may_have_them(here: Hurt, name: str, figures: Figures) -> None:
    places = f"--out={name}", f"--checkpoint-dir={name}", "--checkpoint-every=2"
    assert here.run(*places) == 0, here.said
    assert here.run(*places) == 2
    here.require_one_line("is there already: --resume goes on from it")
    assert here.run(*places, "--resume") == 0, here.said
    path = Path(name, f"{NAME}.json")
    assert read_record(path).status == "complete"
    read_tensors(path, read_record(path))
    require_tidy(Path(name), NAME)
    begun = Path(name, f"{NAME}-step4.json")
    assert here.run("--out=new", f"--resume-from={begun}") == 0, here.said
    assert sorted(each.name for each in Path().iterdir()) == sorted(["new", name])
    figures("unusual name of a folder")


def test_files_may_have_them(here: Hurt, name: str, figures: Figures) -> None:
    assert here.run("--out=out", f"--save-weights={name}") == 0, here.said
    load_arrays(Path(name))
    assert here.run("--out=out", f"--init-weights={name}") == 0, here.said
    assert read_record(Path("out", f"{NAME}.json")).config.init_weights
    assert sorted(each.name for each in Path().iterdir()) == sorted(["out", name])
    figures("unusual name of a file")


@pytest.mark.parametrize("flag", FLAGS)
def test_what_is_wrong_with_them_is_said_in_one_line(here: Hurt, name: str, flag: str) -> None:
    if flag in ("out", "checkpoint-dir"):
        Path(name).write_text("a file")
    elif flag == "save-weights":
        Path(name).mkdir()
    extra = ["--dataset=fashion-mnist"] if flag == "data-dir" else []
    assert here.run("--out=new", *extra, f"--{flag}={name}") == 2
    here.require_one_line(".")
    assert here.said[:-1].isprintable()
    assert not Path("new").exists()


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("odd", ["", ".", "/", "x" * 256, "x/" * 2050])
def test_what_no_file_can_be_called_is_refused(here: Hurt, flag: str, odd: str) -> None:
    extra = ["--dataset=fashion-mnist"] if flag == "data-dir" else []
    if (flag, odd) in {("out", ""), ("out", "."), ("checkpoint-dir", ""), ("checkpoint-dir", ".")}:
        return  # the working directory
    if odd == "/" and flag in ("out", "checkpoint-dir"):
        return  # the machine's own
    assert here.run("--out=new", *extra, f"--{flag}={odd}") == 2
    here.require_one_line(".")
    assert not Path("new").exists()
