"""The picture of a folder of runs; only the environment that draws collects this file."""

from pathlib import Path

from common.summary import main


def test_the_picture_is_the_same_for_the_same_records(runs: Path) -> None:
    pictures = []
    for name in ("a.svg", "b.svg"):
        assert main([str(runs), "--picture", str(runs / name)]) == 0
        pictures.append((runs / name).read_text())
    assert pictures[0] == pictures[1]
    assert "<svg" in pictures[0]
    assert "jax, 1" in pictures[0]
