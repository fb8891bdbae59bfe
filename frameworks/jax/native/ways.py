"""For each strategy, what of JAX trains so."""

from common.chapters.splitting import Native


def native() -> Native:
    """LeNet, split by JAX's own means: they are loaded for runs that ask for them."""
    from frameworks.jax.native import pipeline, program

    ways = dict.fromkeys(program.LAYOUTS, program.make)
    return Native({**ways, "pipeline": pipeline.make})
