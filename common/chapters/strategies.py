"""The options of the chapter of strategies: LeNet with momentum, split over devices."""

from argparse import _ArgumentGroup as ArgumentGroup
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from common.backends.frameworks import NO_NATIVE
from common.chapters.spec import Options, option, told
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import Net, lenet
from common.parallel.plans import Plan
from common.terminal.values import DEPTH, DEVICES, MICROBATCHES, counts, distance

STRATEGIES: Final = {name: plan.words for name, plan in strategies.STRATEGIES.items()}
"""The ways to split training, in words; the first is the default."""

SCHEDULES: Final = {
    "1f1b": "a stage passes a microbatch back as soon as it can",
    "gpipe": "all microbatches go forward, then all go back",
    "naive": "one microbatch passes forward and back before the next one begins",
}
"""The orders of a pipeline, in words; the first is the default."""


@dataclass(frozen=True)
class StrategiesOptions(Options):
    """By which of `STRATEGIES` training is split, over how many replicas, into how many parts.

    `stages` has the number of layers of each stage of a pipeline; if it is empty, stages have as
    equal work as can be. `native`: by the framework's native version.
    """

    MEANS: ClassVar = ("strategy", "native", "replicas", "microbatches", "schedule", "stages")

    strategy: str = option("data", f"{told(STRATEGIES)} (%(default)s)", known=STRATEGIES)
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
        "1f1b", f"of a pipeline, {told(SCHEDULES)} (1f1b)", known=SCHEDULES, unset=True
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
            help="use the framework's native version instead of the hand-written one; not "
            f"supported: {', '.join(NO_NATIVE.get(framework, {}))}",
        )

    def net(self) -> str:
        """The net, in words."""
        return f"LeNet with {self.depth} layers more" if self.depth else "LeNet"

    def network(self) -> Net:
        """LeNet, deeper if that is asked for."""
        return lenet(self.depth)

    def plan(self, devices: int) -> Plan:
        """The plan by which so many devices train the net."""
        return strategies.split(
            self.network(),
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
        net, group = self.network(), devices // self.replicas
        told, layers = (
            strategies.refusal(net, self.strategy, devices, self.replicas),
            len(net.units),
        )
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
        return self.plan(devices).usage(examples, itemsize)

    def parts(self, devices: int) -> int:
        """Into how many parts a minibatch is cut, each of which has to get an example."""
        sharded = strategies.STRATEGIES[self.strategy].sharded
        return devices if sharded or self.strategy == "data" else self.replicas

    def way(self) -> str:
        """The strategy and, if there are several, the number of replicas."""
        several = self.replicas > 1 and self.strategy != "data"
        way = f"{self.strategy}x{self.replicas}" if several else self.strategy
        return f"native-{way}" if self.native else way
