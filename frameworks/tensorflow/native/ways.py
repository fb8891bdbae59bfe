"""For each strategy, what of TensorFlow trains so."""

from common.chapters.splitting import Native


def native() -> Native:
    """LeNet, split by TensorFlow's own means: they are loaded for runs that ask for them."""
    from frameworks.tensorflow.native import layouts, program

    return Native(dict.fromkeys(layouts.LAYOUTS, program.make))
