"""The plan of a pipeline: each device has a stage of consecutive layers."""

from functools import cached_property
from itertools import accumulate
from typing import Any

from common.parallel.ledger import Group
from common.parallel.nets import Net
from common.parallel.pipelines import most_live
from common.parallel.plans import Layouts, Plan


class Pipeline(Plan):
    """Activations go to the next stage, their gradients come back."""

    words = "consecutive layers on each device (the book's network partitioning)"

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        if group <= len(net.units):
            return ""
        stages = f"a pipeline of {group} devices needs as many stages"
        return f"{stages}, and the net can be cut into {len(net.units)}"

    @cached_property
    def weights(self) -> Layouts:
        homes = {layer: i for i, layers in enumerate(self.stages) for layer in layers}
        return {x: self.whole(x, i) for layer, i in homes.items() for x in self.tensors[layer]}

    def count_sends(self, examples: int, row: Group) -> None:
        """Counts a message to each neighbour for each microbatch."""
        times = len(self.microbatches_of(examples))
        for stage, names in enumerate(self.stages[1:]):
            size = examples * self.inputs[names[0]]
            row.send(size, stage, stage + 1, "activations", times)
            row.send(size, stage + 1, stage, "gradients", times)

    def in_flight(self, examples: int, device: int) -> tuple[int, int]:
        """Those that have passed forward, and are not yet back."""
        sizes = [rows.stop - rows.start for rows in self.microbatches_of(examples)]
        passes = self.order(len(sizes))[device]
        return most_live(passes, sizes.__getitem__), most_live(passes)

    def gradients_kept(self, device: int, examples: int) -> int:
        """Also of layers' outputs, between the halves of a backward pass."""
        sizes = [rows.stop - rows.start for rows in self.microbatches_of(examples)]
        signs, outputs = {"input": 1, "weights": -1}, self.outputs_kept(device)
        changes = [
            signs.get(kind, 0) * sizes[i] * outputs
            + (i == 0 and kind in ("backward", "weights")) * self.elements_updated(device)
            for _, i, kind in self.order(len(sizes))[device]
        ]
        most: int = max(accumulate(changes))
        return most

    def outputs_kept(self, device: int) -> int:
        """The elements of layers' outputs for each example, whose gradients the halves keep.

        A block's replace as many activations, or more (Qi et al., 2023, table 1).
        """
        inputs = [self.inputs[name] for name in self.layers[1:]]
        outputs = dict(zip(self.layers, [*inputs, self.output(self.layers[-1])], strict=True))
        every = self.blocks.recompute == "layers"
        return sum(outputs[name] for name in self.stages[device] if every or name == "head")

    def activations_kept(self, device: int) -> tuple[int, int]:
        return self.kept(self.stages[device])
