"""A `Trainer` without a kvstore sums no gradients: each copy trains only on its examples.

Written: `Trainer(..., kvstore=None)`, to do without a parameter server, on two contexts.
Expected: both copies take the step of all four examples.
"""

import mxnet as mx
from mxnet import autograd, gluon, np, npx

from silent.report import report

npx.set_np()
CONTEXTS = [mx.cpu(0), mx.cpu(1)]
X = np.array([[1.0], [2.0], [3.0], [6.0]])


def after_a_step(kvstore: str | None) -> list[float]:
    net = gluon.nn.Dense(1, use_bias=False, in_units=1)
    net.initialize(mx.init.Zero(), CONTEXTS)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1}, kvstore=kvstore)
    with autograd.record():
        losses = [net(shard).sum() for shard in gluon.utils.split_and_load(X, CONTEXTS)]
    for loss in losses:
        loss.backward()
    trainer.step(len(X))
    return [float(net.weight.data(context)) for context in CONTEXTS]


if __name__ == "__main__":
    results = {"weights of the copies, kvstore=None": after_a_step(None)}
    remedies = {"kvstore='device'": after_a_step("device")}
    report(f"mxnet {mx.__version__}", [-float(X.mean())] * 2, results, remedies)
