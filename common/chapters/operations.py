"""How much arithmetic training takes: that of convolutions and products."""

from common.chapters.spec import Options


def training_operations(options: Options) -> int:
    """Floating-point operations of one training step, for each image in the minibatch.

    Backward costs twice what forward does, except in the first layer: the gradient of the images is
    not needed.
    """
    net = options.network()
    work = [net.work(layer) for layer in net.layers]
    return 2 * (3 * sum(work) - work[0])
