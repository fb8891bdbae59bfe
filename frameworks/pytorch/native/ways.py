"""For each strategy, what of PyTorch trains so."""

from common.chapters.splitting import MakeTrainer, Native


def native() -> Native:
    """LeNet, split by PyTorch's own means: they are loaded for runs that ask for them."""
    from frameworks.pytorch.native import pipeline, tensor, zero
    from frameworks.pytorch.native.launch import launch

    ways: dict[str, MakeTrainer] = {
        "data": zero.Replicated,
        "pipeline": pipeline.Staged,
        "tensor": tensor.Sliced,
        "zero1": zero.Zero1,
        "zero2": zero.Zero2,
        "zero3": zero.Zero3,
    }
    return Native(ways, launch)
