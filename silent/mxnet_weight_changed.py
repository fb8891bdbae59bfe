"""MXNet computes a gradient with a weight that changed after the forward pass.

Written: a forward pass, an update of the weight in place, then `backward()`: as in a pipeline
whose stage is updated while a microbatch is in flight.
Expected: the gradient at the weight of the forward pass.
"""

import mxnet as mx
from mxnet import autograd, np, npx

from silent.report import report

npx.set_np()


def gradient(*, in_place: bool) -> float:
    leaf = weight = np.array([3.0])
    leaf.attach_grad()
    with autograd.record():
        loss = weight * weight
    if in_place:
        weight += 7
    else:
        weight = weight + 7
    loss.backward()
    return float(leaf.grad)


if __name__ == "__main__":
    results = {"weight += 7": gradient(in_place=True)}
    remedies = {"weight = weight + 7": gradient(in_place=False)}
    report(f"mxnet {mx.__version__}", 2 * 3.0, results, remedies)
