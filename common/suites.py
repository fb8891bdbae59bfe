"""Which runs make up the parity grid: what the sessions run, and what the comparison expects."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

FRAMEWORKS: Final = ("pytorch", "tensorflow", "jax", "mxnet")
CHAPTERS: Final = ("scratch", "concise")


Settings = dict[str, str | int | float]


@dataclass(frozen=True)
class Suite:
    """Runs that must reach the same result: one for each framework and number of devices.

    Those of a `timed` suite have the machine for themselves; others run side by side.
    """

    chapter: str
    name: str
    folder: str
    devices: tuple[int, ...]
    settings: Settings
    timed: bool = False

    def flags(self, devices: int, results: Path) -> list[str]:
        """The flags of one run of the suite, its record going below `results`."""
        flags = [f"--devices={devices}", f"--out={results / self.folder}"]
        flags += [] if self.timed else ["--threads=1"]
        return flags + [
            f"--{key.replace('_', '-')}={value}" for key, value in self.settings.items()
        ]


_LENET: Final[Settings] = {
    "batch_size": 100,
    "lr": 0.2,
    "steps": 20,
    "train_examples": 2000,
    "test_examples": 500,
}

_RESNET: Final[Settings] = {
    "width": 8,
    "batch_size": 30,
    "lr": 0.02,
    "steps": 4,
    "train_examples": 300,
    "test_examples": 100,
}


def _resnet(dtype: str, batch_norm: str) -> Suite:
    name = f"{dtype}-{batch_norm}"
    settings = {**_RESNET, "dtype": dtype, "batch_norm": batch_norm}
    return Suite("concise", name, name, (1, 2, 4), settings)


# Float64 shows that the algorithm is the same, float32 after it what rounding adds.
SUITES: Final = (
    Suite("scratch", "quick", ".", (1, 2), {"preset": "quick"}, timed=True),
    Suite("scratch", "float64", "float64", (1, 2, 3, 4), {**_LENET, "dtype": "float64"}),
    Suite("scratch", "float32", "float32", (1, 2, 3, 4), {**_LENET, "dtype": "float32"}),
    _resnet("float64", "per-device"),
    _resnet("float64", "sync"),
)
"""The suites that the sessions run. Of the batches, 100 is uneven on three devices, 30 on four."""

SUITE_NAMES: Final = tuple(dict.fromkeys(suite.name for suite in SUITES))
