"""MXNet keeps only the gradient of the last microbatch.

Written: two microbatches, one `backward()` for each, as PyTorch's users accumulate gradients.
Expected: the gradient of the sum over both.
"""

import mxnet as mx
from mxnet import autograd, np, npx

from silent.report import report

npx.set_np()
MICROBATCHES = 2.0, 5.0


def gradient(**grad_req: str) -> float:
    weight = np.array([1.0])
    weight.attach_grad(**grad_req)
    for x in MICROBATCHES:
        with autograd.record():
            loss = weight * x
        loss.backward()
    return float(weight.grad)


if __name__ == "__main__":
    results = {"attach_grad()": gradient()}
    remedies = {"attach_grad(grad_req='add')": gradient(grad_req="add")}
    report(f"mxnet {mx.__version__}", sum(MICROBATCHES), results, remedies)
