"""`weight.to(device)` makes no copy if the weight is there already: two replicas are one.

Written: two replicas of a weight on the CPU, a gradient on each, their sum, and a step of each.
Expected: the step that one replica takes with both examples.
"""

from collections.abc import Callable

import torch

from silent.report import report

WEIGHT = torch.zeros(1, requires_grad=True)
X = torch.tensor([1.0, 3.0])
RATE = 1.0


def after_a_step(replica: Callable[[], torch.Tensor]) -> float:
    replicas = [replica() for _ in X]
    for weight, x in zip(replicas, X, strict=True):
        (weight * x).sum().backward()
    total = torch.stack([weight.grad for weight in replicas]).sum(0)  # the allreduce
    with torch.no_grad():
        for weight in replicas:
            weight -= RATE * total
    return replicas[0].item()


if __name__ == "__main__":
    remedies = {"detach().clone()": after_a_step(lambda: WEIGHT.detach().clone().requires_grad_())}
    results = {"to('cpu')": after_a_step(lambda: WEIGHT.to("cpu"))}
    report(f"torch {torch.__version__}", -RATE * X.sum(), results, remedies)
