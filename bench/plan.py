"""What is measured: which contenders, in which framework, on how much work."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from common.backends.devices import DeviceRequest
from common.backends.frameworks import FRAMEWORKS
from common.base.machine import cores
from common.chapters.spec import Options
from common.data.dataset import Bytes
from common.settings.request import Request


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


def options(framework: str, chapter: str) -> Options:
    """The options of the book's preset, as a framework has them by default."""
    return Request.parsed(framework, chapter, ["--preset=book"]).with_preset(1, "cpu").options


@dataclass(frozen=True)
class Rivals:
    """What users would run instead: the contender of each framework that has one."""

    contenders: dict[str, str]
    devices: int = 1


HIGH_LEVEL: Final = Rivals(
    {"pytorch": "keras", "tensorflow": "keras", "jax": "keras", "mxnet": "estimator"}
)
"""The framework's own high-level loop, or Keras's."""

D2L: Final = Rivals(dict.fromkeys(FRAMEWORKS, "d2l"))
"""The pieces of the book's own package."""

FABRIC: Final = Rivals({"pytorch": "fabric"}, devices=2)
"""A library that brings a plain net onto several devices."""

RIVALS: Final = (HIGH_LEVEL, D2L, FABRIC)


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

    @property
    def wanted(self) -> DeviceRequest:
        """The devices that our own chapter is timed on."""
        return DeviceRequest(self.devices, "cpu", cores())

    @property
    def options(self) -> Options:
        """The options that our own chapter is timed with."""
        return options(self.framework, self.chapter)

    def module(self) -> str:
        """Where the class `Fit` of a rival is; the book's package differs with the framework."""
        return (
            f"bench.d2l_{self.framework}"
            if self.contender == "d2l"
            else f"bench.{self.contender}_fit"
        )


def entries(frameworks: tuple[str, ...], chapters: tuple[str, ...]) -> list[Entry]:
    """Everything to be timed in one round; what is compared lies side by side."""
    made = []
    for chapter in chapters:
        for framework in frameworks:
            made += [Entry(framework, chapter, "ours", devices) for devices in (1, 2)]
            made += [
                Entry(framework, chapter, rivals.contenders[framework], rivals.devices)
                for rivals in RIVALS
                if framework in rivals.contenders
            ]
    return made + [Entry(framework, "", "machine", 1) for framework in frameworks]
