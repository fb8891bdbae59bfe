"""The chapter of strategies: LeNet with momentum, split over devices."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.chapters.scratch import SCRATCH
from common.chapters.spec import ChapterSpec, Options, meanings, option
from common.chapters.suites import Settings, Suite
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import Net, lenet
from common.parallel.plans import Plan
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, counts, distance

STRATEGIES: Final = {name: plan.words for name, plan in strategies.STRATEGIES.items()}
"""The strategies; the first is the default."""

SCHEDULES: Final = {
    "1f1b": "a stage passes a microbatch back as soon as it can",
    "gpipe": "all microbatches go forward, then all go back",
    "naive": "one microbatch passes forward and back before the next one begins",
}
"""The schedules of a pipeline; the first is the default."""


@dataclass(frozen=True)
class StrategiesOptions(Options):
    """The strategy, and what only some strategies have; `stages` are sizes in layers."""

    MEANS: ClassVar = ("strategy", "native", "replicas", "microbatches", "schedule", "stages")

    strategy: str = option("data", f"{meanings(STRATEGIES)} (%(default)s)", known=STRATEGIES)
    replicas: int = option(
        1,
        "R model-parallel groups, each of which splits the net; "
        "gradients are summed over the groups (%(default)s)",
        most=DEVICES,
        metavar="R",
    )
    microbatches: int = option(
        None,
        "cut the shard of a group into M microbatches; their gradients are added (1; pipeline: 4)",
        most=MICROBATCHES,
        metavar="M",
    )
    schedule: str = option(
        "1f1b", f"of a pipeline, {meanings(SCHEDULES)} (%(default)s)", known=SCHEDULES
    )
    stages: tuple[int, ...] = option(
        (),
        "number of layers in each stage of a pipeline (else such that work is balanced)",
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
    native: bool = option(
        False, "use the framework's native version instead of the hand-written one"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.microbatches:
            default = 4 if self.strategy == "pipeline" else 1
            object.__setattr__(self, "microbatches", default)

    def network(self) -> Net:
        return lenet(self.depth)

    def plan(self, devices: int) -> Plan:
        net, where = self.network(), (self.strategy, devices, self.replicas)
        m, order, sizes = self.microbatches, self.schedule, self.stages
        return strategies.split(net, *where, microbatches=m, schedule=order, sizes=sizes)

    def refusal(self, devices: int) -> str:
        net, group = self.network(), devices // self.replicas
        layers, stages = len(net.units), self.stages
        if self.strategy != "pipeline" and (stages or self.schedule != "1f1b"):
            flag = "stages" if stages else "schedule"
            return f"--{flag} means nothing for --strategy {self.strategy}: it is for pipeline"
        if self.strategy == "data":
            if self.replicas in (1, devices):
                return ""
            return "--strategy data has a replica on each device: --replicas is for the others"
        why = strategies.refusal(net, self.strategy, devices, self.replicas)
        if self.strategy == "pipeline" and why and group > layers:
            return f"{why}: ask for fewer --devices, or for --depth {group - layers + self.depth}"
        if stages and not why and (len(stages) != group or sum(stages) != layers):
            return f"--stages needs {group} numbers, one a device, that add up to {layers} layers"
        return why

    def no_native(self, framework: str) -> str:
        lacks = NO_NATIVE.get(framework)
        if lacks is None:
            return f"there are no native versions in {framework}"
        schedule = lacks.get(self.schedule, "") if self.strategy == "pipeline" else ""
        return lacks.get(self.strategy, schedule)

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage:
        return self.plan(devices).usage(examples, itemsize)

    def parts(self, devices: int) -> int:
        sharded = strategies.STRATEGIES[self.strategy].sharded
        return devices if sharded or self.strategy == "data" else self.replicas

    def way(self) -> str:
        several = self.replicas > 1 and self.strategy != "data"
        way = f"{self.strategy}x{self.replicas}" if several else self.strategy
        return f"native-{way}" if self.native else way


# JAX compiles each layer for each size, so the test set is as large as a microbatch. 67
# divides by neither 2 nor 3: an error in the weights of shards or microbatches shows. An epoch
# ends after two steps: momentum that is lost there shows in the third. The fourth shows where a
# resumed run goes on within an epoch, and at which rate. A hidden layer more has a square weight,
# of which a transposed gradient has the right shape.
_SHORT: Final[Settings] = {"lr": 0.05, "lr_decay": "linear", "steps": 4}
_SIZES: Final[dict[str, Settings]] = {
    "float64": {
        "batch_size": 67,
        "microbatches": 3,
        "train_examples": 134,
        "test_examples": 23,
        "depth": 1,
    },
    "float32": {"batch_size": 101, "train_examples": 202, "test_examples": 101},
}


def _suite(
    name: str,
    devices: tuple[int, ...],
    more_devices: tuple[int, ...] = (),
    alone_in: str = "float64-data",
    repeats: str = "",
    **settings: str | int,
) -> Suite:
    """Runs from the same weights and on the same minibatches as all others of the dtype."""
    dtype = name.partition("-")[0]
    every: Settings = {**_SHORT, **_SIZES[dtype], "dtype": dtype, **settings}
    lacking = _lacking(every) if "native" in settings else {}
    where = name, f"strategies/{name}", devices, more_devices
    return Suite("strategies", *where, every, repeats=repeats, alone_in=alone_in, lacking=lacking)


def _lacking(settings: Settings) -> dict[str, str]:
    """Why frameworks have no native version with these settings, by framework."""
    order = str(settings.get("schedule", "1f1b"))
    options = StrategiesOptions(str(settings["strategy"]), schedule=order)
    return {name: why for name in FRAMEWORKS if (why := options.no_native(name))}


def _suites() -> Iterator[Suite]:
    """Every strategy, schedule and mesh: all must give the same result."""
    for name in STRATEGIES:  # runs of users, in no session
        settings: Settings = {"preset": "quick", "strategy": name}
        native: Settings = {**settings, "native": True}
        lacking = _lacking(native)
        yield Suite("strategies", name, ".", (), (), settings)
        yield Suite("strategies", f"native-{name}", ".", (), (), native, lacking=lacking)
    yield _suite("float64-data", (1, 2), (3,), alone_in="", strategy="data")
    for name in STRATEGIES:
        if name != "data":  # two devices take less time, and three have uneven slices
            counts = ((2,), (3,)) if name in ("zero1", "zero2") else ((3,), (2,))
            yield _suite(f"float64-{name}", *counts, strategy=name)
    straight = "float64-pipeline"
    yield _suite("float64-resumed", (3,), repeats=straight, strategy="pipeline", checkpoint_every=3)
    for order in ("gpipe", "naive"):
        yield _suite(f"float64-{order}", (), (3,), strategy="pipeline", schedule=order)
    for name, more in {"pipeline": (6,), "tensor": (4, 6), "zero3": (6,)}.items():
        yield _suite(f"float64-{name}-mesh", (), more, strategy=name, replicas=2)
    native_suite = partial(_suite, native=True)
    yield native_suite("float64-native-data", (2,), (3,), strategy="data")
    pipeline = {"strategy": "pipeline", "schedule": "gpipe"}
    yield native_suite("float64-native-pipeline", (3,), (2,), **pipeline)
    yield native_suite("float64-native-tensor", (3,), (2,), strategy="tensor")
    yield native_suite("float64-native-zero1", (3,), (2,), strategy="zero1", checkpoint_every=3)
    yield native_suite("float64-native-zero2", (), (2,), strategy="zero2")
    yield native_suite("float64-native-zero3", (), (2, 3), strategy="zero3")
    yield native_suite("float64-native-zero3-mesh", (4,), strategy="zero3", replicas=2)
    for name in ("tensor", "zero1", "zero2"):
        yield native_suite(f"float64-native-{name}-mesh", (), (4,), strategy=name, replicas=2)
    # The first chapter's float32 runs show rounding; these stand for all strategies.
    yield _suite("float32-data", (), (1, 2), alone_in="", strategy="data")
    yield _suite("float32-zero3", (), (2,), "float32-data", strategy="zero3")
    yield native_suite("float32-native-zero3", (), (2,), "float32-data", strategy="zero3")
    yield _suite("float64-deep", (), (1, 8), alone_in="", strategy="pipeline", depth=4)


SPLIT: Final = ChapterSpec(
    name="strategies",
    title="LeNet split by data, pipeline or tensor parallelism, which the book's 'Training on "
    "Multiple GPUs' names, or by ZeRO",
    heading="LeNet, split in every way",
    options=StrategiesOptions,
    presets={
        "book": {**SCRATCH.presets["book"], "lr": 0.02},
        "quick": {**SCRATCH.presets["quick"], "lr": 0.03},
    },
    suites=tuple(_suites()),
)
