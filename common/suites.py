"""Which runs make up the parity grid: what the sessions run, and what the comparison expects."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")
CHAPTERS: Final = ("scratch",)


@dataclass(frozen=True)
class Suite:
    """Runs that must reach the same result: one for each framework, chapter and device count."""

    name: str
    folder: str
    devices: tuple[int, ...]
    settings: dict[str, str | int | float]
    about: str

    def flags(self, devices: int, results: Path) -> list[str]:
        """The flags of one run of the suite, its record going below `results`."""
        flags = [f"--devices={devices}", f"--out={results / self.folder}"]
        return flags + [
            f"--{key.replace('_', '-')}={value}" for key, value in self.settings.items()
        ]


_PROOF: Final[dict[str, str | int | float]] = {
    "batch_size": 100,
    "lr": 0.2,
    "steps": 20,
    "train_examples": 2000,
}

SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite("quick", ".", (1, 2), {"preset": "quick"}, "training that learns something"),
        Suite(
            "float64",
            "float64",
            (1, 2, 3, 4),
            {**_PROOF, "test_examples": 500, "dtype": "float64"},
            "the same algorithm: agreement to rounding",
        ),
        Suite(
            "float32",
            "float32",
            (1, 2, 3, 4),
            {**_PROOF, "test_examples": 500, "dtype": "float32"},
            "rounding alone: agreement with the float64 answer",
        ),
    )
}
"""The suites that the sessions run, by name; a batch of 100 is uneven on three devices."""
