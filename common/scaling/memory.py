"""Predicts the memory of a device of a mesh."""

from collections.abc import Iterator

from common.parallel.nets import Net
from common.parallel.pipelines import IN_FLIGHT
from common.scaling.steps import Degrees


def stages(
    net: Net, how: Degrees, examples: int, sizes: tuple[int, int]
) -> Iterator[tuple[dict[str, float], float, float]]:
    """Of a device of each stage of blocks: peak bytes by kind, at one time; microbatches in flight.

    `sizes` are the bytes of an element and of its optimizer state. A stage's first backward pass
    begins without gradients. They grow as activations are freed. ZB-H1 keeps them, and the
    logits' gradient, for the weights' half. Interleaved stages have chunks of more microbatches
    in flight, as in Megatron-LM.
    """
    item, state = sizes
    tokens = examples / how.shards / how.replicas / how.microbatches
    for stage, layers in enumerate(net.cut(how.pipeline)):
        after = how.pipeline - stage
        late = min(stage, how.microbatches - 1) if how.schedule == "zb1" else 0
        most: float = IN_FLIGHT[how.schedule](after, how.microbatches) + late
        if how.chunks > 1:
            most = (2 * after - 1 + (how.chunks - 1) * how.pipeline) / how.chunks
        live = min(how.microbatches, most)
        size = sum(map(net.size, layers)) / how.tensor
        shard, largest = size / how.shards, max(map(net.size, layers)) / how.tensor
        kept, again = net.kept(layers, how.tensor)
        logits = late * sum(net.output(x) for x in layers if x == "head") / how.tensor
        peak = {
            "weights": item * (shard + largest if how.zero == 3 else size),
            "gradients": item * (size, size + shard, shard + largest, shard + largest)[how.zero],
            "momentum": state * (shard if how.zero else size),
            "activations": item * tokens * (kept * live + again + logits),
        }
        later = peak["activations"] * (live - (live == how.microbatches)) / live
        changing = max(peak["activations"], peak["gradients"] + later)
        yield peak, peak["weights"] + peak["momentum"] + changing, live
