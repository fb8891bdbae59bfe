"""What is measured: which contenders, in which framework, on how much work."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, Protocol

from common.backends.devices import DeviceRequest
from common.backends.frameworks import FRAMEWORKS
from common.base.machine import cores
from common.chapters.spec import Options
from common.chapters.strategies import STRATEGIES
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

    `epoch` is how many examples a whole epoch has: where `examples` are fewer, it is extrapolated.
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
    "strategies": Workload("strategies", batch_size=256, lr=0.02, examples=50 * 256),
}


def on_gpus(workload: Workload, gpus: int) -> Workload:
    """The same on GPUs: ResNet-18 takes the book's 256 images on each, and some more steps."""
    if workload.width is None:
        return workload
    batch_size = 256 * gpus
    return replace(workload, batch_size=batch_size, lr=0.1 * gpus, examples=25 * batch_size)


def options(framework: str, chapter: str, **settings: str) -> Options:
    """The options of the book's preset, as a framework has them by default."""
    request = Request.from_settings(framework, chapter, preset="book", **settings)
    return request.resolve(1, "cpu").options


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

FABRIC_ALONE: Final = replace(FABRIC, devices=1)

RIVALS_ON_GPUS: Final = (HIGH_LEVEL, FABRIC_ALONE)
"""On one GPU each. What is taken of the book's package is written for CPUs here."""


@dataclass(frozen=True)
class Entry:
    """One thing to be timed, in a process of its own, on devices of a kind: "cpu" or "gpu"."""

    framework: str
    chapter: str
    contender: str
    devices: int
    kind: str = "cpu"

    def key(self) -> str:
        """A name that no other entry has."""
        return f"{self.framework} {self.chapter} {self.contender} {self.devices} {self.kind}"

    @property
    def wanted(self) -> DeviceRequest:
        """The devices that a contender is timed on."""
        return DeviceRequest(self.devices, self.kind, cores())

    @property
    def workload(self) -> Workload:
        """What a contender trains on."""
        workload = WORKLOADS[self.chapter]
        return on_gpus(workload, self.devices) if self.kind == "gpu" else workload

    @property
    def options(self) -> Options:
        """The options that our own chapter is timed with."""
        settings = {"strategy": self.contender} if self.chapter == "strategies" else {}
        return options(self.framework, self.chapter, **settings)

    @property
    def ours(self) -> bool:
        """Whether it is our own chapter, of which each strategy is a contender."""
        return self.contender in ("ours", *STRATEGIES)

    def module(self) -> str:
        """Where the class `Fit` of a rival is; the book's package differs with the framework."""
        return (
            f"bench.d2l_{self.framework}"
            if self.contender == "d2l"
            else f"bench.{self.contender}_fit"
        )


def entries(frameworks: tuple[str, ...], chapters: tuple[str, ...], gpus: int = 0) -> list[Entry]:
    """Everything to be timed in one round; what is compared lies side by side.

    Ours is timed on 1 and 2 CPU devices, or on 1 and all of so many `gpus`.
    """
    kind, most, all_rivals = ("gpu", gpus, RIVALS_ON_GPUS) if gpus else ("cpu", 2, RIVALS)
    made = []
    for chapter in chapters:
        ours = STRATEGIES if chapter == "strategies" else ("ours",)
        for framework in frameworks:
            for name, k in product(ours, sorted({1, most})):
                made.append(Entry(framework, chapter, name, k, kind))
            made += [
                Entry(framework, chapter, rivals.contenders[framework], rivals.devices, kind)
                for rivals in all_rivals
                if framework in rivals.contenders and chapter != "strategies"
            ]
    return made if gpus else made + [Entry(each, "", "machine", 1) for each in frameworks]
