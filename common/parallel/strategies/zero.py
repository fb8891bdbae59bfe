"""The plans of ZeRO: each device takes a shard, and updates a slice of each weight."""

from functools import cached_property
from itertools import accumulate

from common.parallel.ledger import Group
from common.parallel.plans import Layouts, Plan


class Zero1(Plan):
    """Gradients are scattered at the end of a step, and new weights gathered."""

    words = "as data, with the optimizer state sharded"
    sharded = True

    @cached_property
    def updated(self) -> Layouts:
        """A slice of each flat tensor on each device."""
        return {name: self.slices(name) for name in self.shapes}

    def count_sends(self, examples: int, row: Group) -> None:
        microbatches = len(self.shards_of(examples))
        scatters = 1 if self.strategy == "zero1" else microbatches
        gathers = 2 * microbatches if self.strategy == "zero3" else 1
        slices = [self.elements_updated(device) for device in range(self.devices)]
        tensors = len(self.shapes)
        row.reduce_scatter([scatters * x for x in slices], "gradients", scatters * tensors)
        row.all_gather([gathers * x for x in slices], "weights", gathers * tensors)

    def gradients_kept(self, device: int, examples: int) -> int:
        """All gradients, and the slices of their sum."""
        return sum(map(self.size, self.layers)) + self.elements_updated(device)


class Zero2(Zero1):
    """The gradients of a layer are scattered in each microbatch."""

    words = "also shards the gradients"

    def gradients_kept(self, device: int, examples: int) -> int:
        """Those of one layer, the last one first, and the slices that earlier ones have left.

        Of several microbatches, an earlier one has left all slices.
        """
        sizes, layers = self.sizes_of(self.updated, device), self.layers[::-1]
        local = (sum(sizes[name] for name in self.tensors[layer]) for layer in layers)
        left = list(accumulate(local))
        if len(self.shards_of(examples)) > 1:
            left = left[-1:] * len(layers)
        pairs = zip(left, layers, strict=True)
        return max(slices + self.size(layer) for slices, layer in pairs)


class Zero3(Zero2):
    """The weights of a layer are gathered before it is used, forward and backward."""

    words = "also shards the weights"

    @cached_property
    def weights(self) -> Layouts:
        """Each device has the slices that it updates."""
        return self.updated

    def weights_kept(self, device: int) -> int:
        """Its slices, and one whole layer."""
        return super().weights_kept(device) + max(map(self.size, self.layers))
