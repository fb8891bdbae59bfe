"""The plan of context parallelism: each device has some tokens of each sequence."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any

from common.parallel.ledger import Group
from common.parallel.nets import Net
from common.parallel.plans import Layouts, Part, Plan
from common.parallel.shards import shard_bounds

EXCHANGES = {
    "ring": "keys and values go round, and are attended to part by part",
    "gather": "each device gathers all keys and values",
    "ulysses": "tokens are exchanged for heads, and back",
}
"""How devices attend to tokens of others; the first is the default."""


class Context(Plan):
    """Devices exchange what attention needs. Each sums gradients of its tokens with the others."""

    words = "some tokens of each sequence on each device, for --net gpt"
    partial = True

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        if not net.blocks.count:
            return "--strategy context is for a transformer: images are no sequences"
        tokens = net.blocks.sequence
        if group > tokens:
            return f"{group} devices cannot share the {tokens} tokens of a sequence"
        if how.get("exchange") == "ulysses" and net.blocks.heads % group:
            heads = f"{group} devices do not divide {net.blocks.heads}"
            return f"Ulysses shares heads: {heads}"
        return ""

    @cached_property
    def tokens(self) -> list[list[int]]:
        """The places of each device's tokens.

        A causal mask leaves the first tokens little to attend to. In zigzag order, a device has
        the i-th part of the sequence and the i-th from behind, so that all have as much work.
        """
        parts = 1 if self.contiguous else 2
        bounds = shard_bounds(self.blocks.sequence, parts * self.devices)
        chunks = [list(range(*ends)) for ends in bounds]
        if self.contiguous:
            return chunks
        return [chunks[i] + chunks[-1 - i] for i in range(self.devices)]

    def tokens_of(self, device: int) -> Sequence[int]:
        return self.tokens[device]

    @cached_property
    def weights(self) -> Layouts:
        """All on each device, but of positions those of its tokens."""
        parts = tuple(Part(0, tuple(tokens)) for tokens in self.tokens)
        positions = {"embed.position": parts} if self.vocabulary else {}
        return {**super().weights, **positions}

    def taken_by(self, name: str) -> str:
        *_, part, kind = name.split(".")
        functions = {"norm": "enter", "qkv": "project", "proj": "unite"}
        return "finish" if (part, kind) == ("proj", "bias") else functions.get(part, "layer")

    def count_sends(self, examples: int, row: Group) -> None:
        times = self.blocks.count * len(self.microbatches_of(examples))
        state = self.blocks.count * examples * self.blocks.hidden
        local = [state * len(tokens) for tokens in self.tokens]
        keys = [2 * size // self.blocks.queries_per_key for size in local]  # with values
        if self.exchange == "ulysses":  # tokens for heads, and the output back
            outputs = [size // self.devices for size in local]
            qkv = [(size + more) // self.devices for size, more in zip(local, keys, strict=True)]
            for kind, there, back in (("activations", qkv, outputs), ("gradients", outputs, qkv)):
                row.all_gather(there, kind, times)
                row.reduce_scatter(back, kind, times)
        elif self.exchange == "gather":  # keys and values, and again in the backward pass
            row.all_gather([2 * size for size in keys], "activations", 2 * times)
            row.reduce_scatter(keys, "gradients", times)
        else:  # they pass all others, forward and backward; their gradients come home
            hops = range(self.devices - 1)
            for kind, steps in (("activations", [*hops, *hops]), ("gradients", [*hops, len(hops)])):
                for step, device in product(steps, range(self.devices)):
                    target = (device + 1) % self.devices
                    row.send(keys[device - step], device, target, kind, times)

    def activations_kept(self, device: int) -> tuple[int, int]:
        """Of its tokens: what one device would keep; what heads have found, and their sums."""
        here, tokens = len(self.tokens[device]), self.blocks.sequence
        kept, again = (math.ceil(size * here / tokens) for size in self.kept(self.layers))
        if self.blocks.recompute == "layers":
            size = self.blocks.hidden * here
            by_heads = 3 * self.blocks.hidden * tokens // self.devices
            sums = by_heads if self.exchange == "ulysses" else self.blocks.heads * here
            kept += self.blocks.count * (size + sums)
        return kept, again
