"""The chapter of strategies: LeNet with momentum, split over devices in each way there is."""

from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.chapters.spec import ChapterSpec, Options, Preset, option, told
from common.chapters.suites import Settings, Suite
from common.models.nets import Shapes, lenet_shapes
from common.parallel import plans
from common.parallel.costs import predicted
from common.parallel.ledger import Usage
from common.parallel.nets import lenet
from common.parallel.plans import Plan
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, counts, distance

STRATEGIES: Final = {
    "data": "a replica of the net on each device, each with a shard of the minibatch",
    "pipeline": "consecutive layers on each device (the book's network partitioning)",
    "tensor": "a slice of every layer on each device (the book's layerwise partitioning)",
    "zero1": "as data, but each device has the momentum of a slice of the weights alone",
    "zero2": "and the gradient of this slice alone",
    "zero3": "and of the weights, too, this slice alone",
}
"""The ways to split training, in words; the first is the default."""

SCHEDULES: Final = {
    "1f1b": "a stage passes a microbatch back as soon as it can",
    "gpipe": "all microbatches go forward, then all go back",
    "naive": "one microbatch is there and back before the next one begins",
}
"""The orders of a pipeline, in words; the first is the default."""


@dataclass(frozen=True)
class StrategiesOptions(Options):
    """By which of `STRATEGIES` training is split, over how many replicas, into how many parts.

    `stages` has the number of layers of each stage of a pipeline; if it is empty, stages have as
    equal work as can be. `native`: by the framework's own means.
    """

    MEANS: ClassVar = ("strategy", "native", "replicas", "microbatches", "schedule", "stages")

    strategy: str = option("data", f"{told(STRATEGIES)} (%(default)s)", known=STRATEGIES)
    replicas: int = option(
        1,
        "the devices are R groups, each of which splits the net; "
        "gradients are summed over the groups (%(default)s)",
        most=DEVICES,
        metavar="R",
    )
    microbatches: int = option(
        None,
        "a group's share of the minibatch goes through in M parts; "
        "their gradients add up (1; pipeline: 4)",
        most=MICROBATCHES,
        metavar="M",
    )
    schedule: str = option(
        "1f1b", f"of a pipeline, {told(SCHEDULES)} (1f1b)", known=SCHEDULES, unset=True
    )
    stages: tuple[int, ...] = option(
        (),
        "how many layers each device of a pipeline has (else such that work is balanced)",
        type=counts,
        most=DEVICES,
        metavar="N,N",
    )
    momentum: float = option(
        0.9,
        "v = M v + gradient, w = w - lr v (%(default)s)",
        type=distance,
        least=0,
        most=1,
        metavar="M",
    )
    depth: int = option(
        0,
        "D dense layers of 128 more before the last one (%(default)s)",
        least=0,
        most=DEPTH,
        metavar="D",
    )
    native: bool = False

    def __post_init__(self) -> None:
        """A pipeline takes four microbatches, if none are asked for."""
        super().__post_init__()
        if not self.microbatches:
            default = 4 if self.strategy == "pipeline" else 1
            object.__setattr__(self, "microbatches", default)

    @classmethod
    def add_flags(cls, group: ArgumentGroup, framework: str) -> None:
        """Adds a flag for each option."""
        super().add_flags(group, framework)
        group.add_argument(
            "--native",
            action="store_true",
            help="by the framework's own means, in place of those written by hand; it has none "
            f"for: {', '.join(NO_NATIVE.get(framework, {}))}",
        )

    def net(self) -> str:
        """The net, in words."""
        return f"LeNet with {self.depth} layers more" if self.depth else "LeNet"

    def shapes(self) -> Shapes:
        """Canonical names and shapes of the net's weights."""
        return lenet_shapes(self.depth)

    def positions(self, layer: str) -> int:
        """At how many positions of an image a layer is applied."""
        return lenet(self.depth).positions[layer]

    def plan(self, devices: int) -> Plan:
        """The plan by which so many devices train the net."""
        return plans.split(
            lenet(self.depth),
            self.strategy,
            devices,
            self.replicas,
            microbatches=self.microbatches,
            schedule=self.schedule,
            sizes=self.stages,
        )

    def refusal(self, devices: int) -> str:
        """Why so many devices cannot train so, and what to ask for; empty if they can."""
        if self.strategy == "data":
            by_itself = "--strategy data has a replica on each device: --replicas is for the others"
            return "" if self.replicas in (1, devices) else by_itself
        net, group = lenet(self.depth), devices // self.replicas
        told, layers = plans.refusal(net, self.strategy, devices, self.replicas), len(net.units)
        if self.strategy == "pipeline" and told and group > layers:
            return f"{told}: ask for fewer --devices, or for --depth {group - layers + self.depth}"
        wrong = len(self.stages) != group or sum(self.stages) != layers
        if self.strategy == "pipeline" and self.stages and wrong and not told:
            return (
                f"--stages has to have {group} numbers, one for each device of a pipeline, "
                f"that add up to the {layers} layers"
            )
        return told

    @classmethod
    def idle(cls, flags: Mapping[str, Any]) -> str:
        """Which flag means nothing beside the others, and why; empty if none."""
        strategy = flags["strategy"]
        for name in ("schedule", "stages"):
            if flags[name] and strategy != "pipeline":
                return f"--{name} means nothing for --strategy {strategy}: it is for pipeline"
        return ""

    def no_native(self, framework: str) -> str:
        """Why a framework has no means of its own to train so; empty if it has."""
        asked = [self.strategy]
        if self.strategy == "pipeline":
            asked.append(self.schedule)
        lacks = NO_NATIVE.get(framework, {})
        return next((lacks[each] for each in asked if each in lacks), "")

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage:
        """What a step on so many examples sends and keeps, by formula."""
        return predicted(self.plan(devices), examples, itemsize)

    def parts(self, devices: int) -> int:
        """Into how many parts a minibatch is cut, each of which has to get an example."""
        return devices if self.strategy not in ("pipeline", "tensor") else self.replicas

    def way(self) -> str:
        """The strategy and, if there are several, the number of replicas."""
        several = self.replicas > 1 and self.strategy != "data"
        way = f"{self.strategy}x{self.replicas}" if several else self.strategy
        return f"native-{way}" if self.native else way

    def in_words(self) -> str:
        """What an introduction says of the options."""
        found = [self.strategy, *["native"] * self.native, f"momentum {self.momentum:g}"]
        if self.replicas > 1:
            found.append(f"{self.replicas} replicas")
        if self.strategy == "pipeline":
            found.append(self.schedule)
        if self.microbatches > 1:
            found.append(f"{self.microbatches} microbatches")
        return ", ".join(found)


# JAX compiles each layer for each size on each device. So the test set is as large as a microbatch,
# and its shards have the sizes of those of microbatches. Sizes differ in float32 on 2 devices, and
# on more in float64.
_SHORT: Final[Settings] = {"lr": 0.05, "steps": 3, "train_examples": 2000}
_SIZES: Final[dict[str, Settings]] = {
    "float64": {"batch_size": 102, "microbatches": 3, "test_examples": 34},
    "float32": {"batch_size": 101, "test_examples": 101},
}


def _suite(
    name: str,
    devices: tuple[int, ...],
    more_devices: tuple[int, ...] = (),
    alone_in: str = "float64-data",
    **settings: str | int,
) -> Suite:
    """Runs from the same weights and over the same minibatches as all others, in one dtype."""
    dtype = name.partition("-")[0]
    given: Settings = {**_SHORT, **_SIZES[dtype], "dtype": dtype, **settings}
    folder = f"strategies/{name}"
    suite = Suite("strategies", name, folder, devices, more_devices, given, alone_in=alone_in)
    return _told_of_lacking(suite) if "native" in settings else suite


def _told_of_lacking(suite: Suite) -> Suite:
    """A suite of runs by frameworks' own means; some frameworks may have none."""
    given: dict[str, Any] = {
        k: v for k, v in suite.settings.items() if k in ("strategy", "schedule")
    }
    options = StrategiesOptions(**given)
    lacking = {name: why for name in FRAMEWORKS if (why := options.no_native(name))}
    return replace(suite, lacking=lacking)


def _suites() -> Iterator[Suite]:
    """Every strategy, and further orders of a pipeline, meshes, and stages: one answer for all."""
    for name in STRATEGIES:  # of runs that are made by hand
        given: Settings = {"preset": "quick", "strategy": name}
        suite = Suite("strategies", name, ".", (), (), given)
        own: Settings = {**given, "native": True}
        yield suite
        yield _told_of_lacking(replace(suite, name=f"native-{name}", settings=own))
    # Three devices show what two hide; four are those of meshes, and of tests.
    yield _suite("float64-data", (1, 2), (3,), alone_in="", strategy="data")
    # ZeRO-2 goes through what ZeRO-1 and ZeRO-3 go through, so `nox -s grid` alone runs it.
    for name in ("pipeline", "tensor", "zero1", "zero3"):
        yield _suite(f"float64-{name}", (2,), (3,), strategy=name)
    yield _suite("float64-zero2", (), (2, 3), strategy="zero2")
    for order in ("gpipe", "naive"):
        yield _suite(f"float64-{order}", (), (3,), strategy="pipeline", schedule=order)
    for name, more in {"pipeline": (6,), "tensor": (4, 6), "zero3": (6,)}.items():
        yield _suite(f"float64-{name}-mesh", (), more, strategy=name, replicas=2)
    native = partial(_suite, native=True)
    yield native("float64-native-data", (2,), (3,), strategy="data")
    for name, order in {"pipeline": "gpipe", "naive": "naive"}.items():
        yield native(f"float64-native-{name}", (2,), (3,), strategy="pipeline", schedule=order)
    yield native("float64-native-tensor", (2,), (3,), strategy="tensor")
    yield native("float64-native-zero1", (2,), strategy="zero1")
    yield native("float64-native-zero2", (), (2,), strategy="zero2")
    yield native("float64-native-zero3", (2,), (3,), strategy="zero3")
    yield native("float64-native-tensor-mesh", (), (4,), strategy="tensor", replicas=2)
    # What rounding adds shows in the first chapter's float32 runs; these stand for all strategies.
    yield _suite("float32-data", (), (1, 2), alone_in="", strategy="data")
    yield _suite("float32-zero3", (), (2,), "float32-data", strategy="zero3")
    yield native("float32-native-zero3", (), (2,), "float32-data", strategy="zero3")
    yield _suite("float64-deep", (), (1, 8), alone_in="", strategy="pipeline", depth=4)


SPLIT: Final = ChapterSpec(
    name="strategies",
    net="LeNet",
    title="LeNet split over devices by layers, by slices, or by what training keeps: the ways "
    "that the book's 'Training on Multiple GPUs' names, and ZeRO",
    heading="LeNet, split in every way",
    options=StrategiesOptions,
    presets={
        "book": Preset(batch_size=256, lr=0.02, epochs=10),
        "quick": Preset(
            batch_size=16,
            lr=0.03,
            lr_decay="linear",
            epochs=4,
            train_examples=4800,
            test_examples=2000,
        ),
    },
    suites=tuple(_suites()),
)
