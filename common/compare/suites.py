"""Which runs make up the parity grid: what the sessions run, and what the comparison expects."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.settings.chapters import ALLREDUCES, BATCH_NORMS

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True)
class Suite:
    """Runs that must reach the same result: one for each framework and number of devices.

    They run side by side, each on one thread: what they show is no speed. Plain `nox` runs them on
    `devices`, `nox -s grid` on `more_devices` after it.
    """

    chapter: str
    name: str
    folder: str
    devices: tuple[int, ...]
    more_devices: tuple[int, ...]
    settings: Settings

    def flags(self, devices: int, results: Path) -> list[str]:
        """The flags of one run of the suite, its record going below `results`."""
        flags = [f"--devices={devices}", f"--out={results / self.folder}", "--threads=1"]
        settings = {key.replace("_", "-"): value for key, value in self.settings.items()}
        return flags + [
            f"--{key}" if value is True else f"--{key}={value}" for key, value in settings.items()
        ]


_LENET: Final[Settings] = {
    "batch_size": 100,
    "lr": 0.2,
    "steps": 10,
    "train_examples": 2000,
    "test_examples": 100,
}

# With this seed no ReLU unit of the first step has an input within 9e-6 of zero, with Fashion-MNIST
# as with the synthetic set, on 1, 2 and 4 devices: one that rounding decides moves a float32
# gradient by some percent, and every step makes more of it.
_RESNET: Final[Settings] = {
    "width": 4,
    "batch_size": 6,
    "lr": 0.03,
    "steps": 2,
    "seed": 13,
    "train_examples": 300,
    "test_examples": 100,
}


def _resnet(dtype: str, batch_norm: str) -> Suite:
    name = f"{dtype}-{batch_norm}"
    settings: Settings = {**_RESNET, "dtype": dtype, "batch_norm": batch_norm}
    if name == "float64-per-device":  # a net that differs shows here, in whatever mode
        settings["layers"] = True
    return Suite("concise", name, name, (1, 2), (4,), settings)


def _allreduce(name: str) -> Suite:
    """The float64 runs once more, with another allreduce: it has to give the same answer."""
    settings = {**_LENET, "dtype": "float64", "allreduce": name}
    return Suite("scratch", name, f"allreduce/{name}", (), (1, 3, 4), settings)


# Float64 shows that the algorithm is the same, float32 after it what rounding adds.
SUITES: Final = (
    Suite("scratch", "quick", ".", (1, 2), (), {"preset": "quick"}),
    Suite("scratch", "float64", "float64", (1, 2), (3, 4), {**_LENET, "dtype": "float64"}),
    Suite("scratch", "float32", "float32", (1, 2), (3, 4), {**_LENET, "dtype": "float32"}),
    *(_allreduce(name) for name in ALLREDUCES if name != "star"),
    Suite("concise", "quick", ".", (1, 2), (), {"preset": "quick"}),
    *(_resnet(dtype, mode) for dtype in ("float64", "float32") for mode in BATCH_NORMS),
)
"""The suites that the sessions run. Of the batches, 100 is uneven on three devices, 6 on four."""

SUITE_NAMES: Final = tuple(dict.fromkeys(suite.name for suite in SUITES))
