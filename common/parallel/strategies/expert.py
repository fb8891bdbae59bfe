"""The plan of expert parallelism: each device has some experts, and a shard of the examples."""

from functools import cached_property
from typing import Any

from common.parallel.ledger import Group
from common.parallel.nets import Experts, Net
from common.parallel.plans import Layouts, Plan
from common.parallel.shards import shard_bounds, shard_sizes


class Expert(Plan):
    """Tokens go to the devices of their experts and come back, forward and backward."""

    words = "as data, with the experts of each layer shared by devices"
    sharded = partial = True
    experts: Experts

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        count = net.experts.count if net.experts else 0
        if group > count:
            return f"{group} devices cannot share the {count} experts of a layer"
        return ""

    def rows_of(self, examples: int) -> list[slice]:
        """The examples of each replica, such that all devices have consecutive shards."""
        bounds = shard_bounds(examples, self.replicas * self.devices)
        firsts, lasts = bounds[:: self.devices], bounds[self.devices - 1 :: self.devices]
        return [slice(first[0], last[1]) for first, last in zip(firsts, lasts, strict=True)]

    @cached_property
    def weights(self) -> Layouts:
        """Experts in order, some on each device; of all else, each device has the whole."""
        experts = {name: self.slices(name, 0) for name in self.of_experts}
        return {name: experts.get(name) or self.whole(name) for name in self.shapes}

    def taken_by(self, name: str) -> str:
        """Of a layer with experts, tensors go to three functions."""
        *_, part, _ = name.split(".")
        return {"norm": "enter", "router": "probabilities"}.get(part, "experts")

    @cached_property
    def owned(self) -> list[int]:
        """The number of experts on each device."""
        return shard_sizes(self.experts.count, self.devices)

    def slots_of(self, examples: int) -> list[int]:
        """The tokens that each device may send to an expert, where its group has examples."""
        return [self.experts.slots(tokens) for tokens in self.tokens_here(examples)]

    def tokens_here(self, examples: int) -> list[int]:
        """The number of tokens of each device."""
        return [self.positions[self.layers[0]] * n for n in shard_sizes(examples, self.devices)]

    def count_sends(self, examples: int, row: Group) -> None:
        """Counts tokens there and back, and the load of experts, which columns sum, too."""
        layers = len(self.mixtures)
        state, slots = layers * self.blocks.hidden, self.slots_of(examples)
        there = [[state * count * experts for experts in self.owned] for count in slots]
        for kind in ("activations", "gradients"):
            row.all_to_all(there, kind, layers)
            row.all_to_all([*zip(*there, strict=True)], kind, layers)
        row.allreduce(layers * self.experts.count, "activations", layers)

    def count_sums(self, device: int, column: Group) -> None:
        super().count_sums(device, column)
        layers = len(self.mixtures)
        column.allreduce(layers * self.experts.count, "activations", layers)

    def memory(self, examples: int, device: int, itemsize: int, state: int) -> dict[str, int]:
        """With what experts received and made; within one, 4 h a slot, in an MLP 8 h a token."""
        kept, slots = super().memory(examples, device, itemsize, state), self.slots_of(examples)
        received, made = self.owned[device] * sum(slots), self.experts.count * slots[device]
        within = {"layers": 0, "full": 1}.get(self.blocks.recompute, len(self.mixtures))
        elements = within * (4 * received - 8 * self.tokens_here(examples)[device])
        elements += len(self.mixtures) * (received + made)
        kept["activations"] += self.blocks.hidden * elements * itemsize
        return kept
