"""What a record tells of the allreduces of a step: rounds, and bytes of each device."""

import json
from pathlib import Path

import pytest
from fake_chapter import CommandLine

N = 4 * 129_068  # bytes of LeNet's gradient in float32
TENSORS = 8  # each is summed by itself


@pytest.mark.parametrize(
    ("flags", "rounds", "moved"),
    [
        ("--devices=4", 2, [3 * N, N, N, N]),
        ("--devices=2 --allreduce=ring --dtype=float64", 2, [2 * N] * 2),
        ("--devices=4 --allreduce=native", None, []),  # it does not tell
    ],
)
def test_a_record_counts_rounds_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, rounds: int, moved: list[int]
) -> None:
    assert CommandLine(monkeypatch, tmp_path)(*flags.split()) == 0
    (path,) = Path("out").glob("*dev.json")
    counted = rounds and {"rounds": TENSORS * rounds, "sent": moved, "received": moved}
    assert json.loads(path.read_text())["traffic"] == counted
