"""For each strategy, what of MXNet trains so."""

from common.chapters.splitting import Native


def native() -> Native:
    """LeNet, split by MXNet's own means: they are loaded for runs that ask for them."""
    from frameworks.mxnet.native import pipeline, replicas

    return Native({"data": replicas.Replicated, "pipeline": pipeline.Staged})
