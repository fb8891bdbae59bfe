"""Weights never get a name by which a run would remove, replace or fail to read them."""

from pathlib import Path

import pytest
from fake_chapter import RECORD, CommandLine
from stopping import EVERY, KEPT

NAME = RECORD.stem
TAKEN = (
    *(f"out/{NAME}.previous.safetensors", f"out/{NAME}.unfinished.json", f"out/.{NAME}.lock"),
    *(f"kept/{NAME}-step1.safetensors", f"kept/{NAME}-step7.json", f"kept/.{NAME}.lock"),
    f"linked/{NAME}-step7.safetensors",
)
FREE = (
    *(f"out/{NAME}-step.safetensors", f"out/{NAME}.weights.safetensors", "kept/weights"),
    f"{NAME}-step7.safetensors",
)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, in a folder of its own, with a second name for that of checkpoints."""
    made = CommandLine(monkeypatch, tmp_path)
    KEPT.mkdir()
    Path("linked").symlink_to(KEPT)
    return made


@pytest.mark.parametrize("path", TAKEN)
def test_a_name_that_the_run_itself_uses_is_refused(
    command: CommandLine, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    assert command(*EVERY, "--quiet", f"--save-weights={path}") == 2
    why = "has a name that the run uses itself: name another file"
    line = f"python -m frameworks.pytorch.scratch: error: --save-weights {path} {why}\n"
    assert capsys.readouterr() == ("", line)
    assert not RECORD.parent.exists()


@pytest.mark.parametrize("path", FREE)
def test_any_other_name_stays(command: CommandLine, path: str) -> None:
    for flags in ([], ["--resume"]):
        assert command(*EVERY, *flags, "--quiet", f"--save-weights={path}") == 0
        assert Path(path).is_file()
