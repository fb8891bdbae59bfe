"""The chapter of strategies: LeNet, or a small transformer, split over devices."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

from common.backends.frameworks import NO_NATIVE
from common.chapters import scratch
from common.chapters.spec import SUMS, ChapterSpec, Options, Settings, Task, meanings, option
from common.parallel import strategies
from common.parallel.ledger import Usage
from common.parallel.nets import Experts, Net, gpt, lenet
from common.parallel.plans import Plan
from common.parallel.strategies.context import EXCHANGES
from common.terminal.command import DEPTH, DEVICES, MICROBATCHES, at_least_0, counts, distance

STRATEGIES: Final = {name: plan.words for name, plan in strategies.STRATEGIES.items()}
"""The strategies; the first is the default."""

WITH_EXPERTS: Final = STRATEGIES | {"expert": strategies.OF_EXPERTS["expert"].words}
"""Also that of a mixture of experts."""

SCHEDULES: Final = {
    "1f1b": "a stage passes a microbatch back as soon as it can",
    "gpipe": "all microbatches go forward, then all go back",
    "naive": "one microbatch passes forward and back before the next one begins",
    "zb1": "ZB-H1: 1f1b, but the gradients of weights come later, where a device would wait",
}
"""The schedules of a pipeline; the first is the default."""


NETS: Final = {
    "lenet": "the book's, by SGD with momentum, on garments",
    "gpt": "a small transformer, by Adam, on sums such as 27+58=",
    "moe": "gpt, in which every second MLP is a mixture of 4 experts",
}
"""The nets; the first is the default."""


@dataclass(frozen=True)
class StrategiesOptions(Options):
    """The net, the strategy, and what only some have; `stages` are sizes in layers."""

    MEANS: ClassVar = ("strategy", "native", "replicas", "microbatches", "schedule", "stages")

    strategy: str = option("data", meanings(WITH_EXPERTS), known=WITH_EXPERTS)
    replicas: int = option(
        1,
        "R model-parallel groups, each of which splits the net; "
        "gradients are summed over the groups",
        most=DEVICES,
        metavar="R",
    )
    microbatches: int = option(
        None,
        "cut the shard of a group into M microbatches; their gradients are added (1; pipeline: 4)",
        most=MICROBATCHES,
        metavar="M",
    )
    schedule: str = option("1f1b", f"of a pipeline, {meanings(SCHEDULES)}", known=SCHEDULES)
    stages: tuple[int, ...] = option(
        (),
        "number of layers in each stage of a pipeline (else such that work is balanced)",
        type=counts,
        most=DEVICES,
        metavar="N,N",
    )
    momentum: float = option(
        0.9, "v = M v + gradient, w = w - lr v", type=distance, least=0, most=1, metavar="M"
    )
    net: str = option("lenet", meanings(NETS), known=NETS)
    depth: int = option(
        None,
        "lenet: D dense layers of 128 more before the last one (0); gpt, moe: D blocks (2)",
        least=0,
        most=DEPTH,
        metavar="D",
    )
    clip: float = option(
        None,
        "gpt, moe: scale the gradient to a norm of C at most; 0: never (1)",
        type=at_least_0,
        least=0,
        most=1e9,
        metavar="C",
    )
    sequence_parallel: bool = option(
        False, "gpt, tensor: share norms and residuals, too, by tokens"
    )
    attention: str = option("ring", f"of context: {meanings(EXCHANGES)}", known=EXCHANGES)
    contiguous: bool = option(
        False, "context: consecutive tokens on each device, not zigzag: work is uneven"
    )
    top_k: int = option(2, "moe: each token goes to K experts", most=Experts.count, metavar="K")
    capacity: float = option(
        0.0,
        "moe: of a device's tokens, an expert takes C times an equal share and drops others; "
        "0: it drops none",
        type=at_least_0,
        least=0,
        most=1e9,
        metavar="C",
    )
    balance: float = option(
        0.01,
        "moe: the weight of the auxiliary loss, which is least where experts are chosen equally "
        "often",
        type=at_least_0,
        least=0,
        most=1e9,
        metavar="B",
    )
    native: bool = option(
        False, "use the framework's native version instead of the hand-written one"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        gpt = self.net != "lenet"
        defaults: dict[str, int | float] = {"microbatches": 4 if self.strategy == "pipeline" else 1}
        defaults |= {"depth": 2 if gpt else 0, "clip": 1.0 if gpt else 0.0}
        for name, default in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)

    @property
    def idle(self) -> tuple[str, ...]:
        alone = ("net",) if self.net == "lenet" else ()
        of_nets = ((name, nets) for name, (what, nets) in MEANT.items() if what == "net")
        return alone + tuple(name for name, nets in of_nets if self.net not in nets)

    @property
    def task(self) -> Task:
        return super().task if self.net == "lenet" else SUMS

    @property
    def state(self) -> tuple[str, ...]:
        return ("momentum",) if self.net == "lenet" else ("momentum", "variance")

    def network(self) -> Net:
        if self.net == "lenet":
            return lenet(self.depth)
        experts = Experts(top_k=self.top_k, capacity=self.capacity, balance=self.balance)
        return gpt(self.depth, experts if self.net == "moe" else None)

    def shards(self, devices: int) -> int | None:
        """Those of which experts drop tokens separately."""
        return self.parts(devices) if self.net == "moe" and self.capacity else None

    def plan(self, devices: int) -> Plan:
        net, where = self.network(), (self.strategy, devices, self.replicas)
        how: dict[str, Any] = {"schedule": self.schedule, "sizes": self.stages}
        how |= {"microbatches": self.microbatches, "clips": self.clip > 0}
        how |= {"sequence_parallel": self.sequence_parallel}
        how |= {"exchange": self.attention, "contiguous": self.contiguous}
        return strategies.split(net, *where, **how)

    def refusal(self, devices: int) -> str:
        if self.net == "gpt" and not self.depth:
            return "--net gpt needs a block: ask for a --depth of 1 or more"
        if self.net == "moe" and self.depth < 2:
            return "--net moe has experts in every second block: ask for a --depth of 2 or more"
        if self.net == "moe" and self.strategy not in strategies.OF_EXPERTS:
            return f"--net moe is for --strategy data or expert, not for {self.strategy}"
        if self.net == "moe" and self.microbatches != 1:
            why = "its auxiliary loss is that of the whole minibatch"
            return f"--microbatches means nothing for --net moe: {why}"
        if self.net != "moe" and self.strategy == "expert":
            return f"--strategy expert is for --net moe: {self.net} has no experts"
        return self._without_meaning(devices) or self._impossible(devices)

    def _without_meaning(self, devices: int) -> str:
        """Which flag means nothing beside the others."""
        for name, (what, known) in MEANT.items():
            chosen, given = getattr(self, what), getattr(self, name) != DEFAULT[name]
            if given and chosen not in known:
                flag, others = name.replace("_", "-"), " or ".join(known)
                return f"--{flag} means nothing for --{what} {chosen}: it is for {others}"
        if self.strategy == "data" and self.replicas not in (1, devices):
            return "--strategy data has a replica on each device: --replicas is for the others"
        return ""

    def _impossible(self, devices: int) -> str:
        """Why the net cannot be split so; with data parallelism, no device has a part."""
        if self.strategy == "data":
            return ""
        net, group = self.network(), devices // self.replicas
        layers, stages = len(net.units), self.stages
        how = {"sequence_parallel": self.sequence_parallel, "exchange": self.attention}
        why = strategies.refusal(net, self.strategy, devices, self.replicas, **how)
        if self.strategy == "pipeline" and why and group > layers:
            return f"{why}: ask for fewer --devices, or for --depth {group - layers + self.depth}"
        if stages and not why and (len(stages) != group or sum(stages) != layers):
            return f"--stages needs {group} numbers, one a device, that add up to {layers} layers"
        return why

    def no_native(self, framework: str) -> str:
        if self.net != "lenet":
            return "native versions are for --net lenet"
        lacks = NO_NATIVE.get(framework)
        if lacks is None:
            return f"there are no native versions in {framework}"
        schedule = lacks.get(self.schedule, "") if self.strategy == "pipeline" else ""
        return lacks.get(self.strategy, schedule)

    def usage(self, devices: int, examples: int, itemsize: int) -> Usage:
        return self.plan(devices).usage(examples, itemsize, len(self.state) * itemsize)

    def parts(self, devices: int) -> int:
        plans = {**strategies.STRATEGIES, **strategies.OF_EXPERTS}
        sharded = plans[self.strategy].sharded or self.strategy == "data"
        return devices if sharded else self.replicas

    def way(self) -> str:
        several = self.replicas > 1 and self.strategy != "data"
        way = f"{self.strategy}-sequence" if self.sequence_parallel else self.strategy
        if self.strategy == "context":
            way = f"{self.attention}-contiguous" if self.contiguous else self.attention
        way = f"{way}x{self.replicas}" if several else way
        way = way if self.net == "lenet" else f"{self.net}-{way}"
        return f"native-{way}" if self.native else way


MEANT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "momentum": ("net", ("lenet",)),
    "clip": ("net", ("gpt", "moe")),
    **dict.fromkeys(("top_k", "capacity", "balance"), ("net", ("moe",))),
    **dict.fromkeys(("stages", "schedule"), ("strategy", ("pipeline",))),
    "sequence_parallel": ("strategy", ("tensor",)),
    **dict.fromkeys(("attention", "contiguous"), ("strategy", ("context",))),
}
"""The nets or strategies that an option is for; of others it has the default."""

DEFAULT: Final = {each.name: each.default for each in fields(StrategiesOptions)} | {"clip": 0.0}

OF_SUMS: Final[Mapping[str, Settings]] = {
    "book": {"batch_size": 64, "lr": 0.005, "lr_decay": "linear", "epochs": 30},
    "quick": {
        "batch_size": 32,
        "lr": 0.004,
        "lr_decay": "linear",
        "epochs": 6,
        "train_examples": 8000,
        "test_examples": 2000,
    },
}
"""Presets of transformers."""

CHAPTER: Final = ChapterSpec(
    name="strategies",
    title="LeNet, or a small transformer, split by data, pipeline or tensor parallelism, which the "
    "book's 'Training on Multiple GPUs' names, by ZeRO, or by tokens and experts",
    heading="LeNet, split in every way",
    options=StrategiesOptions,
    presets={
        "book": {**scratch.CHAPTER.presets["book"], "lr": 0.02},
        "quick": {**scratch.CHAPTER.presets["quick"], "lr": 0.03},
    },
    others={"gpt": OF_SUMS, "moe": OF_SUMS},
)
