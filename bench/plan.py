"""What is measured: which contenders, in which framework, on how much work."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from common.data import Bytes

TITLES: Final = {"scratch": "LeNet", "concise": "ResNet-18"}


class Contender(Protocol):
    """A net that can be trained."""

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """What `train` wants, made of images (n, 28, 28) and labels (n,); is not timed."""

    def train(self, data: Any) -> None:
        """Trains once on all of it, and returns when all work is done."""


@dataclass(frozen=True)
class Workload:
    """The setting that all contenders of a chapter train in; `examples` is what is timed.

    `epoch` is how many examples a whole epoch has: ResNet-18's is extrapolated.
    """

    chapter: str
    batch_size: int
    lr: float
    examples: int
    width: int | None = None
    epoch: int = 60_000


WORKLOADS: Final = {
    "scratch": Workload("scratch", batch_size=256, lr=0.2, examples=60_000),
    "concise": Workload("concise", batch_size=64, lr=0.1, examples=6 * 64, width=64),
}

RIVALS: Final = {
    "pytorch": ("keras",),
    "tensorflow": ("keras",),
    "jax": ("keras",),
    "mxnet": ("estimator",),
}
"""The high-level loops that a framework's users would run instead."""


@dataclass(frozen=True)
class Entry:
    """One thing to be timed, in a process of its own."""

    framework: str
    chapter: str
    contender: str
    devices: int

    def key(self) -> str:
        """A name that no other entry has."""
        return f"{self.framework} {self.chapter} {self.contender} {self.devices}"


def entries(frameworks: tuple[str, ...], chapters: tuple[str, ...]) -> list[Entry]:
    """Everything to be timed in one round; what is compared lies side by side."""
    made = []
    for chapter in chapters:
        for framework in frameworks:
            made += [Entry(framework, chapter, "ours", devices) for devices in (1, 2)]
            made += [Entry(framework, chapter, rival, 1) for rival in RIVALS[framework]]
    return made + [Entry(framework, "", "machine", 1) for framework in frameworks]
