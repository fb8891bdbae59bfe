"""MXNet's `make_loss` begins with a gradient of its own.

Written: two microbatches, each with its share of the mean loss, by `make_loss(loss) / 2`.
Expected: the gradient of the mean over both.
"""

import mxnet as mx
from mxnet import autograd, nd

from silent.telling import tell

MICROBATCHES = 2.0, 5.0


def gradient(*, make_loss: bool) -> float:
    weight = nd.array([1.0])
    weight.attach_grad(grad_req="add")
    for x in MICROBATCHES:
        with autograd.record():
            loss = weight * x
            share = (nd.make_loss(loss) if make_loss else loss) / len(MICROBATCHES)
        share.backward()
    return float(weight.grad.asscalar())


if __name__ == "__main__":
    came = {"make_loss(loss) / 2": gradient(make_loss=True)}
    instead = {"loss / 2": gradient(make_loss=False)}
    tell(f"mxnet {mx.__version__}", sum(MICROBATCHES) / 2, came, instead)
