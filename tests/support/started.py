"""Commands that are started as a user would, and the processes that they start."""

from pathlib import Path

CONCISE = ["-m", "frameworks.pytorch.concise"]


def flags(out: Path, steps: int) -> list[str]:
    return [
        "--devices=2",
        "--dataset=synthetic",
        "--train-examples=60",
        "--test-examples=20",
        "--batch-size=15",
        "--width=4",
        "--dtype=float64",
        f"--steps={steps}",
        f"--out={out}",
    ]


def children(parent: int) -> list[int]:
    """The processes that a process has started, in order."""
    return [
        int(child) for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    ]


def alive(process: int) -> bool:
    """Whether a process runs, and is not only waiting to be forgotten."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
