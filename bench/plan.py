"""The plan of a benchmark: contender, framework and devices of each measurement."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from common.backends.interface import DeviceRequest
from common.base.machine import cores
from common.chapters.spec import Options, spec
from common.data.dataset import Bytes
from common.settings.arguments import all_settings


class Contender(Protocol):
    """A net that can be trained."""

    def prepare(self, images: Bytes, labels: Bytes) -> Any:
        """The input of `train` for images (n, 28, 28) and labels (n,); it is not timed."""

    def train(self, data: Any) -> None:
        """Trains for one epoch; returns when all queued work is done."""


@dataclass(frozen=True)
class Workload:
    """The setting of all contenders of a chapter; `examples` are trained on while timed."""

    batch_size: int
    lr: float
    examples: int
    width: int | None = None


WORKLOADS: Final = {
    "scratch": Workload(batch_size=256, lr=0.2, examples=60_000),
    "concise": Workload(batch_size=64, lr=0.1, examples=6 * 64, width=64),
}


@dataclass(frozen=True)
class Entry:
    """One measurement, in a new process, on devices of a kind: "cpu" or "gpu"."""

    framework: str
    chapter: str
    contender: str
    devices: int
    kind: Literal["cpu", "gpu"] = "cpu"

    def key(self) -> str:
        """The name of the entry, unique in a benchmark."""
        return f"{self.framework} {self.chapter} {self.contender} {self.devices} {self.kind}"

    @property
    def request(self) -> DeviceRequest:
        """The devices that a contender is timed on."""
        return DeviceRequest(self.devices, self.kind, cores())

    @property
    def workload(self) -> Workload:
        """The workload; on GPUs, ResNet-18 gets the book's 256 images on each, and more steps."""
        workload = WORKLOADS[self.chapter]
        if self.kind == "cpu" or workload.width is None:
            return workload
        batch_size = 256 * self.devices
        lr = workload.lr * self.devices
        return replace(workload, batch_size=batch_size, lr=lr, examples=25 * batch_size)

    @property
    def options(self) -> Options:
        """The options of our own chapter: the book's preset with the framework's defaults."""
        settings = all_settings(self.framework, self.chapter, {})
        options: Options = spec(self.chapter).chosen(settings, "book")
        return options


def entries(frameworks: tuple[str, ...], chapters: tuple[str, ...], gpus: int = 0) -> list[Entry]:
    """All entries of one round; compared ones are adjacent.

    Ours is timed on 1 and 2 CPU devices, or on 1 and `gpus` GPUs. Rivals are timed on one device,
    except for Lightning Fabric on CPUs, which is timed on two.
    """
    kind: Literal["cpu", "gpu"] = "gpu" if gpus else "cpu"
    most = gpus or 2
    plan = []
    for chapter in chapters:
        for framework in frameworks:
            contenders = [("ours", k) for k in sorted({1, most})]
            contenders.append(("estimator" if framework == "mxnet" else "keras", 1))
            if framework == "pytorch":
                contenders.append(("fabric", 1 if gpus else 2))
            plan += [Entry(framework, chapter, *rest, kind) for rest in contenders]
    return plan
