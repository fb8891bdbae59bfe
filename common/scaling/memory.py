"""Predicts the memory of a device of a mesh."""

from collections.abc import Iterator

from common.parallel.nets import Net
from common.parallel.pipelines import IN_FLIGHT
from common.scaling.steps import Degrees

Stage = tuple[dict[str, float], float, float]
"""Of a stage's device: peak bytes by kind, those at one time, and the microbatches in flight."""


def stages(net: Net, how: Degrees, examples: int, sizes: tuple[int, int]) -> Iterator[Stage]:
    """The stages of a net of blocks; `sizes`: bytes of an element and of its optimizer state.

    A stage's first backward pass begins without gradients. They grow as activations are freed.
    """
    item, state = sizes
    tokens = examples / how.shards / how.replicas / how.microbatches
    parts = net.cut(how.pipeline) if how.pipeline > 1 else [net.layers]
    for stage, layers in enumerate(parts):
        live = in_flight(how, how.pipeline - stage)
        size = sum(map(net.size, layers)) / how.tensor
        shard, largest = size / how.shards, max(map(net.size, layers)) / how.tensor
        kept, again = net.blocks.kept(layers, how.tensor) if net.blocks else (0, 0)
        peak = {
            "weights": item * (shard + largest if how.zero == 3 else size),
            "gradients": item * (size, size + shard, shard + largest, shard + largest)[how.zero],
            "momentum": state * (shard if how.zero else size),
            "activations": item * tokens * (kept * live + again),
        }
        later = peak["activations"] * (live - (live == how.microbatches)) / live
        changing = max(peak["activations"], peak["gradients"] + later)
        yield peak, peak["weights"] + peak["momentum"] + changing, live


def in_flight(how: Degrees, after: int) -> float:
    """The most microbatches that are not yet back, of a stage and those after it.

    Of interleaved stages, chunks of more microbatches, as in Megatron-LM.
    """
    most: float = IN_FLIGHT[how.schedule](after, how.microbatches)
    if how.chunks > 1:
        most = (2 * after - 1 + (how.chunks - 1) * how.pipeline) / how.chunks
    return min(how.microbatches, most)
