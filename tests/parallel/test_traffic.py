"""What a record tells of the allreduce: rounds, and bytes of each device."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_chapter import CommandLine

ENTRIES = 129_068  # of LeNet
N = 4 * ENTRIES  # bytes in float32


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
        ("--devices=4 --allreduce=ring", 6, [2 * 3 * N // 4] * 4),
        ("--devices=4 --allreduce=sharded", 2, [2 * 3 * N // 4] * 4),
        ("--devices=4 --allreduce=halving", 4, [2 * 3 * N // 4] * 4),
        ("--devices=2 --allreduce=ring --dtype=float64", 2, [2 * N] * 2),
        ("--devices=1 --allreduce=tree", 0, [0]),
    ],
)
def test_a_record_counts_rounds_and_bytes(
    command_line: CommandLine, flags: str, rounds: int, moved: list[int]
) -> None:
    assert command_line(*flags.split()) == 0
    assert traffic() == {"rounds": rounds, "sent": moved, "received": moved}


def test_a_tree_moves_as_much_in_all(command_line: CommandLine) -> None:
    assert command_line("--devices=4", "--allreduce=tree") == 0
    found = traffic()
    assert found["rounds"] == 4
    assert sum(found["sent"]) == sum(found["received"]) == 2 * 3 * N


def test_a_frameworks_own_collective_does_not_tell(command_line: CommandLine) -> None:
    assert command_line("--devices=4", "--allreduce=native") == 0
    assert traffic() is None
