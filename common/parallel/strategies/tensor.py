"""The plan of tensor parallelism: each device has a slice of paired layers."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from common.parallel.ledger import Group
from common.parallel.nets import Net
from common.parallel.plans import Layouts, Plan

TRANSFORMER: Final = {
    "embed.weight": 0,
    "head.weight": 1,
    "qkv.weight": 1,
    "qkv.bias": 0,
    "proj.weight": 0,
    "up.weight": 1,
    "up.bias": 0,
    "down.weight": 0,
}
"""Along which axis tensors of a transformer are cut, by the ends of their names.

Words, heads, and what is between the two products of an MLP are shared.
"""


class Tensor(Plan):
    """A pair takes an all-reduce forward and, except for the first pair, one back."""

    words = "a slice of every layer on each device (the book's layerwise partitioning)"

    @classmethod
    def refusal(cls, net: Net, group: int, **how: Any) -> str:
        """Refuses more devices than the narrowest layer has channels, and uneven heads."""
        heads = net.blocks.heads
        if heads % group and net.blocks.recompute != "layers":  # a net that runs takes any
            return f"the {heads} heads of a block do not divide over {group} devices"
        widths = [heads] if heads else [net.shapes[f"{column}.bias"][0] for column, _ in net.pairs]
        narrowest = min(widths, default=0)
        if group <= max(1, narrowest):
            return ""
        what = "heads" if heads else "channels of the narrowest layer"
        return f"{group} devices cannot share the {narrowest} {what}"

    @cached_property
    def axes(self) -> Mapping[str, int]:
        """The axis along which each tensor is cut, of those that are.

        Of a pair, output channels of the first are cut, input channels of the second.
        """
        ends = {name: ".".join(name.split(".")[-2:]) for name in self.shapes}
        axes = {name: TRANSFORMER[end] for name, end in ends.items() if end in TRANSFORMER}
        for column, row in (pair for pair in self.pairs if len({*pair}) > 1):
            axes |= dict.fromkeys(self.tensors[column], 0)
            for name, dense in ((f"{column}.weight", 1), (f"{row}.weight", 0)):
                axes[name] = dense if len(self.shapes[name]) == 2 else 1 - dense
        return axes

    @cached_property
    def weights(self) -> Layouts:
        slices = {name: self.slices(name, axis) for name, axis in self.axes.items()}
        return {name: slices.get(name) or self.whole(name) for name in self.shapes}

    @cached_property
    def summed(self) -> list[tuple[str, ...]]:
        """The layers after which devices' partial sums are added: pairs, embeddings."""
        pairs = [tuple(dict.fromkeys(pair)) for pair in self.pairs]
        return [("embed",), *pairs] if self.vocabulary else pairs

    @cached_property
    def together(self) -> list[tuple[str, ...]]:
        """The layers that are cut; after a head, devices keep the logits of their words."""
        return [*self.summed, ("head",)] if self.vocabulary else self.summed

    @cached_property
    def unpaired(self) -> list[str]:
        """The layers that each device has whole."""
        together = {name for layers in self.together for name in layers}
        return [name for name in self.layers if name not in together]

    def enters(self, layers: Sequence[str]) -> bool:
        """Whether a norm comes before; then the output of a sum is added to the input."""
        return len(layers) == 1 and layers[0] != "embed"

    def taken_by(self, name: str) -> str:
        """Products take what is cut; norms and biases, before and after it, each device has."""
        if ".norm." in name:
            return "enter"
        cut = name in self.axes and name != "embed.position"
        return "product" if cut else "finish"

    def first_word(self, device: int) -> int:
        part = self.weights["embed.weight"][device] if self.vocabulary else None
        return part.places[0] if part else 0

    def count_sends(self, examples: int, row: Group) -> None:
        times = len(self.microbatches_of(examples))
        for kind, elements in self.allreduces:
            row.allreduce(examples * elements, kind, times)

    def activations_kept(self, device: int) -> tuple[int, int]:
        """Of a pair that is recomputed by itself: its input, and the sum."""
        firsts = [*self.unpaired, *(layers[0] for layers in self.together)]
        kept, again = self.kept(firsts, self.devices)
        sums = sum(self.output(layers[-1]) for layers in self.summed)
        return kept + sums * (self.blocks.recompute == "layers"), again
