"""MXNet's `make_loss` starts the backward pass with a gradient of 1.

Written: two microbatches, each with its share of the mean loss, by `make_loss(loss) / 2`.
Expected: the gradient of the mean over both.
"""

import mxnet as mx
from mxnet import autograd, nd

from silent.report import report

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
    results = {"make_loss(loss) / 2": gradient(make_loss=True)}
    remedies = {"loss / 2": gradient(make_loss=False)}
    report(f"mxnet {mx.__version__}", sum(MICROBATCHES) / 2, results, remedies)
