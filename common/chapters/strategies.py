"""The chapter of strategies: LeNet with momentum, split over devices."""

from dataclasses import dataclass
from typing import ClassVar, Final

from common.backends.frameworks import NO_NATIVE
from common.chapters import scratch
from common.chapters.spec import ChapterSpec, Options, meanings, option
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import Net, lenet
from common.parallel.plans import Plan
from common.terminal.command import DEPTH, DEVICES, MICROBATCHES, counts, distance

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


CHAPTER: Final = ChapterSpec(
    name="strategies",
    title="LeNet split by data, pipeline or tensor parallelism, which the book's 'Training on "
    "Multiple GPUs' names, or by ZeRO",
    heading="LeNet, split in every way",
    options=StrategiesOptions,
    presets={
        "book": {**scratch.CHAPTER.presets["book"], "lr": 0.02},
        "quick": {**scratch.CHAPTER.presets["quick"], "lr": 0.03},
    },
)
