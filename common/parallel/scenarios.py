"""Scenarios: a net, a way to split it, and what numbers are kept in; what a step of them takes."""

from dataclasses import dataclass
from typing import Final

from common.parallel.costs import predicted
from common.parallel.ledger import Usage
from common.parallel.nets import Net, dense, lenet, resnet18
from common.parallel.plans import Plan

NETS: Final = ("lenet", "resnet18", "dense")

PRECISIONS: Final = {"float32": (4, 4, 0), "float64": (8, 8, 0), "mixed": (2, 4, 4)}
"""Bytes of a number, of an optimizer's number, and of the weight that an optimizer keeps beside it.

In mixed precision weights, gradients and activations have 16 bits, the optimizer's numbers 32.
"""

OPTIMIZERS: Final = {"sgd": 0, "momentum": 1, "adam": 2}
"""How many numbers an optimizer keeps for each weight."""


@dataclass(frozen=True)
class Scenario:
    """What a plan is made for.

    LeNet has a `depth`, ResNet-18 a `width`, equal dense `layers` a number of `parameters`. If
    `stages` is empty, those of a pipeline have as equal work as can be.
    """

    net: str = "lenet"
    depth: int = 0
    width: int = 64
    parameters: int = 100_000_000
    layers: int = 24
    strategy: str = "data"
    devices: int = 4
    replicas: int = 1
    microbatches: int = 1
    schedule: str = "1f1b"
    stages: tuple[int, ...] = ()
    examples: int = 256
    precision: str = "float32"
    optimizer: str = "momentum"

    def network(self) -> Net:
        """The net."""
        if self.net == "lenet":
            return lenet(self.depth)
        return (
            resnet18(self.width) if self.net == "resnet18" else dense(self.parameters, self.layers)
        )

    def plan(self) -> Plan:
        """How the net is split."""
        replicas = self.devices if self.strategy == "data" else self.replicas
        return Plan(
            self.strategy,
            *self.network(),
            devices=self.devices // replicas,
            replicas=replicas,
            microbatches=self.microbatches,
            schedule=self.schedule,
            layers_by_hand=self.stages,
        )

    def refusal(self) -> str:
        """Why there is no such plan; empty if there is one."""
        if self.net == "dense" and self.parameters < self.layers:
            return f"{self.layers} layers have at least as many parameters, not {self.parameters}"
        group, over = divmod(self.devices, self.replicas)
        if self.strategy != "data" and over:
            groups = f"{self.replicas} groups of one size"
            return f"{groups} take a multiple of {self.replicas} devices, not {self.devices}"
        net = self.network()
        if self.strategy == "pipeline" and group > len(net.units):
            stages = f"a pipeline of {group} devices needs as many stages"
            return f"{stages}, and the net can be cut into {len(net.units)}"
        narrowest = min((net.shapes[f"{column}.bias"][0] for column, _ in net.pairs), default=0)
        if self.strategy == "tensor" and group > max(1, narrowest):
            return f"{group} devices cannot share the {narrowest} channels of the narrowest layer"
        return ""

    def usage(self) -> Usage:
        """What a step sends and keeps."""
        item, state, copy = PRECISIONS[self.precision]
        per_number = copy + OPTIMIZERS[self.optimizer] * state
        return predicted(self.plan(), self.examples, item, per_number)
