"""LeNet as a Symbol: each stage is a context group, and where that is, is said later."""

import mxnet as mx
from mxnet import sym

from common.parallel.plans import Plan


def layer(name: str, X: mx.sym.Symbol, plan: Plan) -> mx.sym.Symbol:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = (sym.var(f"{name}.{kind}").as_np_ndarray() for kind in ("weight", "bias"))
    shape, (out,) = plan.shapes[f"{name}.weight"], plan.shapes[f"{name}.bias"]
    if len(shape) == 4:
        Y = sym.npx.convolution(X, weight, bias, kernel=shape[2:], num_filter=out)
        Y = sym.npx.activation(Y, act_type="relu")
        return sym.npx.pooling(Y, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    Y = sym.npx.fully_connected(X, weight, bias, num_hidden=out)
    return Y if name == "fc2" else sym.npx.activation(Y, act_type="relu")


def group_of(stage: int) -> str:
    """The name of a stage's context group."""
    return f"stage{stage}"


def lenet(plan: Plan) -> mx.sym.Symbol:
    """The logits (n, 10) of "data", images (n, 1, 28, 28); weights have their canonical names."""
    X = sym.var("data").as_np_ndarray()
    for number, names in enumerate(plan.stages):
        with mx.AttrScope(ctx_group=group_of(number)):
            for name in names:
                X = layer(name, X, plan)
    return X
