"""For each strategy, what of JAX trains so."""

from common.chapters.splitting import Native
from common.chapters.strategies import StrategiesOptions


def native() -> Native:
    """LeNet, split by JAX's own means: they are loaded for runs that ask for them."""
    from frameworks.jax.native import pipeline, program

    ways = dict.fromkeys(program.LAYOUTS, program.make)
    return Native({**ways, "pipeline": pipeline.make}, refusal=refusal)


def refusal(options: StrategiesOptions) -> str:
    """Why JAX cannot do what is asked for; empty if it can."""
    if options.strategy == "pipeline" and options.schedule != "gpipe":
        return "JAX's gradient of a pipeline goes back in GPipe's order: ask for --schedule gpipe"
    return ""
