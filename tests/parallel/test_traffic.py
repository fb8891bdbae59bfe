"""What a record tells of the allreduces of a step: rounds, and bytes of each device."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_chapter import CommandLine

ENTRIES = 129_068  # of LeNet
N = 4 * ENTRIES  # bytes in float32
TENSORS = 8  # each is summed by itself


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


def traffic() -> Any:
    """What the only record in `out` says."""
    (path,) = Path("out").glob("*dev.json")
    return json.loads(path.read_text())["traffic"]


@pytest.mark.parametrize(
    ("flags", "rounds", "moved"),
    [
        ("--devices=4", 2, [3 * N, N, N, N]),
        ("--devices=2 --allreduce=ring", 2, [N] * 2),
        ("--devices=2 --allreduce=sharded", 2, [N] * 2),
        ("--devices=2 --allreduce=halving", 2, [N] * 2),
        ("--devices=2 --allreduce=ring --dtype=float64", 2, [2 * N] * 2),
        ("--devices=1 --allreduce=tree", 0, [0]),
    ],
)
def test_a_record_counts_rounds_and_bytes(
    command_line: CommandLine, flags: str, rounds: int, moved: list[int]
) -> None:
    assert command_line(*flags.split()) == 0
    assert traffic() == {"rounds": TENSORS * rounds, "sent": moved, "received": moved}


@pytest.mark.parametrize(
    ("name", "rounds", "most"),
    [("tree", 4, 2 * N), ("ring", 6, 1.5 * N), ("sharded", 2, 1.5 * N), ("halving", 4, 1.5 * N)],
)
def test_every_algorithm_moves_as_much_in_all(
    command_line: CommandLine, name: str, rounds: int, most: float
) -> None:
    assert command_line("--devices=4", f"--allreduce={name}") == 0
    found = traffic()
    assert found["rounds"] == TENSORS * rounds
    assert sum(found["sent"]) == sum(found["received"]) == 2 * 3 * N
    assert max(found["sent"]) == pytest.approx(most, abs=4 * 2 * TENSORS)  # chunks are uneven


def test_a_frameworks_own_collective_does_not_tell(command_line: CommandLine) -> None:
    assert command_line("--devices=4", "--allreduce=native") == 0
    assert traffic() is None
