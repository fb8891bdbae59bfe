"""The plan of tensor parallelism with sequence parallelism: residuals are shared by tokens, too."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from common.parallel.ledger import Group
from common.parallel.nets import Net
from common.parallel.shards import shard_sizes
from common.parallel.strategies.tensor import Tensor


class SequenceParallel(Tensor):
    """An all-gather and a reduce-scatter of tokens take the place of each all-reduce."""

    words = "as tensor, with each token's norms and residuals on one device"
    partial = True

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        if not net.blocks.count:
            return "--sequence-parallel is for --net gpt: images are no sequences"
        if group > net.blocks.sequence:
            return f"{group} devices cannot share the {net.blocks.sequence} tokens of a sequence"
        return super().refusal(net, group)

    @cached_property
    def axes(self) -> Mapping[str, int]:
        """Positions are cut as tokens are."""
        return {**super().axes, "embed.position": 0}

    @cached_property
    def tokens(self) -> list[int]:
        """The number of tokens that each device has of a sequence."""
        return shard_sizes(self.blocks.sequence, self.devices)

    def count_sends(self, examples: int, row: Group) -> None:
        times = len(self.microbatches_of(examples))
        local = [examples * self.blocks.hidden * count for count in self.tokens]
        inputs, sums = len(self.together) - 1, len(self.summed)
        # Inputs are gathered again in the backward pass.
        for kind, gathers, scatters in (
            ("activations", 2 * inputs, sums),
            ("gradients", sums, inputs),
        ):
            row.all_gather([gathers * x for x in local], kind, gathers * times)
            row.reduce_scatter([scatters * x for x in local], kind, scatters * times)
        for _ in range(3):  # of the loss, numbers of each token
            row.allreduce(examples * self.blocks.sequence, "activations", times)

    def activations_kept(self, device: int) -> tuple[int, int]:
        """As tensor parallelism, but of its tokens; to look words up, it has all tokens."""
        kept, again = super().activations_kept(device)
        tokens = self.inputs["embed"]
        states = (kept - tokens) * self.tokens[device]
        return tokens + states // self.blocks.sequence, again
