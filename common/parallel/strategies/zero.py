"""The plans of ZeRO: devices share the examples, and each updates a slice of each weight."""

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from common.parallel.ledger import Ledger
from common.parallel.plans import Layouts, Plan


class Zero1(Plan):
    """Gradients are scattered at the end of a step, and the updated weights gathered."""

    words = "as data, with the optimizer state sharded"
    sharded = True

    @cached_property
    def updated(self) -> Layouts:
        """A slice of each flat tensor on each device."""
        return {name: self.slices(name) for name in self.shapes}

    def count_sends(self, examples: int, group: Sequence[int], ledger: Ledger) -> None:
        microbatches = len(self.shards_of(examples))
        scatters = 1 if self.strategy == "zero1" else microbatches
        gathers = 2 * microbatches if self.strategy == "zero3" else 1
        whole, others = sum(map(self.size, self.layers)), len(group) - 1
        for device, number in enumerate(group):  # each exchanges its slices with all others
            own = self.elements_updated(device)
            rest, slices = ((whole - own) * ledger.itemsize, others * own * ledger.itemsize)
            ledger.sent["gradients"][number] += scatters * rest
            ledger.received["gradients"][number] += scatters * slices
            ledger.sent["weights"][number] += gathers * slices
            ledger.received["weights"][number] += gathers * rest
            ledger.messages[number] += (scatters + gathers) * others * len(self.shapes)

    def gradients_kept(self, device: int, examples: int) -> int:
        """All gradients, and the slices of their sum."""
        return sum(map(self.size, self.layers)) + self.elements_updated(device)


class Zero2(Zero1):
    """The gradients of a layer are scattered as soon as they are computed: for each microbatch."""

    words = "also shards the gradients"

    def gradients_kept(self, device: int, examples: int) -> int:
        """Those of one layer, the last one first, and the slices that earlier ones have left.

        Of several microbatches, an earlier one has left all slices.
        """
        own, layers = self.sizes_of(self.updated, device), self.layers[::-1]
        left = list(accumulate(sum(own[name] for name in self.tensors[layer]) for layer in layers))
        if len(self.shards_of(examples)) > 1:
            left = left[-1:] * len(layers)
        return max(slices + self.size(name) for slices, name in zip(left, layers, strict=True))


class Zero3(Zero2):
    """The weights of a layer are gathered before it is used: twice for each microbatch."""

    words = "also shards the weights"

    @cached_property
    def weights(self) -> Layouts:
        """Each device has the slices that it updates."""
        return self.updated

    def weights_kept(self, device: int) -> int:
        """Its slices, and one whole layer."""
        return super().weights_kept(device) + max(map(self.size, self.layers))
