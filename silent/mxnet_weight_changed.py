"""MXNet takes a gradient with a weight that was changed after the forward computation.

Written: a forward computation, an update of the weight in place, then `backward()`: as in a
pipeline whose stage is updated while a microbatch is on its way.
Expected: the gradient at the weight that the forward computation had.
"""

import mxnet as mx
from mxnet import autograd, np, npx

from silent.telling import tell

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
    came = {"weight += 7": gradient(in_place=True)}
    instead = {"weight = weight + 7": gradient(in_place=False)}
    tell(f"mxnet {mx.__version__}", 2 * 3.0, came, instead)
