"""The plan of tensor parallelism: each device has a slice of paired layers."""

from collections.abc import Sequence
from functools import cached_property

from common.parallel.ledger import Ledger
from common.parallel.nets import Net
from common.parallel.plans import Layouts, Plan
from common.parallel.shards import shard_sizes


class Tensor(Plan):
    """A pair takes an all-reduce forward and, except for the first pair, one back."""

    words = "a slice of every layer on each device (the book's layerwise partitioning)"

    @classmethod
    def refusal(cls, net: Net, group: int) -> str:
        """Refuses more devices than the narrowest layer has channels, and uneven heads."""
        if net.blocks and net.blocks.heads % group:
            return f"the {net.blocks.heads} heads of a block do not divide over {group} devices"
        widths = [net.shapes[f"{column}.bias"][0] for column, _ in net.pairs]
        narrowest = min(widths, default=0)
        if group <= max(1, narrowest):
            return ""
        return f"{group} devices cannot share the {narrowest} channels of the narrowest layer"

    @cached_property
    def weights(self) -> Layouts:
        """Of a pair, output channels of the first are cut, input channels of the second."""
        words = {"embed.weight": 0, "head.weight": 1}  # of a transformer
        axes = {name: axis for name, axis in words.items() if name in self.shapes}
        for column, row in self.pairs:
            axes |= dict.fromkeys(self.tensors[column], 0)
            for name, dense in ((f"{column}.weight", 1), (f"{row}.weight", 0)):
                axes[name] = dense if len(self.shapes[name]) == 2 else 1 - dense
        slices = {name: self.slices(name, axis) for name, axis in axes.items()}
        return {name: slices.get(name) or self.whole(name) for name in self.shapes}

    def count_sends(self, examples: int, group: Sequence[int], ledger: Ledger) -> None:
        times = len(self.microbatches_of(examples))
        for kind, elements in self.allreduces:
            ledger.allreduce(examples * elements * ledger.itemsize, group, kind, times)

    def inputs_kept(self, device: int) -> int:
        """Of a pair: its input, the slice between its layers, and the sum."""
        kept = sum(self.inputs[name] for name in self.unpaired)
        for column, row in self.pairs:
            channels = self.shapes[f"{column}.bias"][0]
            local = shard_sizes(channels, self.devices)[device]
            kept += self.inputs[column] + self.inputs[row] // channels * local
            kept += self.output(row)
        return kept
