"""The concise chapter against the book's package, `d2l`: same weights, same minibatch, float64.

For PyTorch and MXNet the package has the net of this chapter, `resnet18`.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import book
import pytest
from book import apart, renamed
from concise_steps import far, options, request

from common.backends.devices import Process
from common.backends.loading import backend
from common.base.arrays import Weights
from common.models.nets import BLOCKS, STAGES, trainable

LR = 0.125  # MXNet's own SGD rounds learning rates to single precision
X, Y = book.minibatch()
PYTORCH = {
    "^conv1": "0",
    "^bn1": "1",
    "^fc": "fc.1",
    **{rf"^stage{s}\.block{b}": f"resnet_block{s}.{b - 1}" for s in STAGES for b in BLOCKS},
}
MXNET = {
    r"(bn\d)\.weight": r"\1.gamma",
    r"(bn\d)\.bias": r"\1.beta",
    "^conv1": "0",
    "^bn1": "1",
    "^fc": "8",
    **{rf"^stage{s}\.block{b}": f"{s + 2}.{b - 1}" for s in STAGES for b in BLOCKS},
}


def pytorch_net(d2l: Any, weights: Weights) -> Any:
    """The package's net with these weights."""
    torch, layouts = import_module("torch"), import_module("frameworks.pytorch.layouts")
    net = d2l.resnet18(10).double()
    state = {k: torch.from_numpy(layouts.from_canonical(k, v)) for k, v in weights.items()}
    net.load_state_dict({renamed(k, PYTORCH): v for k, v in state.items()}, strict=False)
    return net


def mxnet_net(d2l: Any, weights: Weights, devices: Sequence[Any]) -> Any:
    """The package's net with these weights on all devices."""
    mx, layouts = import_module("mxnet"), import_module("frameworks.mxnet.layouts")
    net = d2l.resnet18(10)
    net.cast("float64")
    net.initialize(mx.init.Zero(), ctx=list(devices))
    net(mx.np.array(X[:1], X.dtype))  # now it knows its shapes
    params = net._collect_params_with_prefix()
    for name, values in weights.items():
        laid_out = mx.np.array(layouts.from_canonical(name, values), values.dtype)
        params[renamed(name, MXNET)].set_data(laid_out)
    return net


def in_pytorch(d2l: Any, devices: Sequence[Any]) -> tuple[Weights, Weights]:
    """What our net and the package's compute: logits in both modes, and gradients."""
    torch, weights = import_module("torch"), book.start()
    concise, layouts = backend("pytorch", "concise"), import_module("frameworks.pytorch.layouts")

    def computed(net: Any, rules: Mapping[str, str]) -> Weights:
        with torch.no_grad():
            evaluated = net.eval()(torch.as_tensor(X))
        y_hat = net.train()(torch.as_tensor(X))
        torch.nn.functional.cross_entropy(y_hat, torch.as_tensor(Y)).backward()
        params = dict(net.named_parameters())
        grads = {k: params[renamed(k, rules)].grad.numpy() for k in weights if trainable(k)}
        logits = {"evaluation": evaluated.numpy(), "training": y_hat.detach().numpy()}
        return logits | {f"gradients/{k}": layouts.to_canonical(k, grads[k]) for k in grads}

    found: Weights = {}

    def ours(process: Process) -> None:
        replicas = concise.replicate(weights, devices[:1], options("pytorch"))
        found.update(computed(replicas.net.module, {}))

    concise.launch(ours, request(1), options("pytorch"))
    return found, computed(pytorch_net(d2l, weights), PYTORCH)


def in_mxnet(d2l: Any, devices: Sequence[Any]) -> tuple[Weights, Weights]:
    """What our net and the package's compute: logits in both modes, and gradients."""
    mx, weights = import_module("mxnet"), book.start()
    concise: Any = backend("mxnet", "concise")
    layouts = import_module("frameworks.mxnet.layouts")

    def computed(forward: Callable[[Any], Any], params: Any, rules: Mapping[str, str]) -> Weights:
        evaluated = forward(mx.np.array(X, X.dtype))
        with mx.autograd.record():
            y_hat = forward(mx.np.array(X, X.dtype))
            loss = concise.listing.loss(y_hat, mx.np.array(Y, Y.dtype)).mean()
        loss.backward()
        own = {k: params[renamed(k, rules)] for k in weights if trainable(k)}
        grads = {k: param.grad(devices[0]).asnumpy() for k, param in own.items()}
        logits = {"evaluation": evaluated.asnumpy(), "training": y_hat.asnumpy()}
        return logits | {f"gradients/{k}": layouts.to_canonical(k, grads[k]) for k in grads}

    ours = concise.replicate(weights, devices[:1], options("mxnet")).net
    theirs = mxnet_net(d2l, weights, devices[:1])
    return (
        computed(lambda images: ours([images])[0], ours.collect_params(), {}),
        computed(theirs, theirs._collect_params_with_prefix(), MXNET),
    )


@pytest.mark.parametrize(
    "computed",
    [
        pytest.param(in_pytorch, marks=pytest.mark.only("pytorch")),
        pytest.param(in_mxnet, marks=pytest.mark.only("mxnet")),
    ],
)
def test_logits_and_gradients_are_those_of_resnet18(
    d2l: Any, all_devices: Sequence[Any], computed: Callable[..., tuple[Weights, Weights]]
) -> None:
    found, expected = computed(d2l, all_devices)
    for mode in ("evaluation", "training"):
        assert far(found.pop(mode), expected.pop(mode)) < 1e-11
    assert apart(found, expected) < 1e-11


def farthest_of(found: Weights, expected: Weights, *endings: str) -> float:
    """The largest distance of weights with such names, each relative to its largest entry."""
    return max(far(found[k], expected[k]) for k in expected if k.endswith(endings))


@pytest.mark.only("pytorch")
def test_a_step_is_that_of_train_batch_in_pytorch(
    d2l: Any, concise: Any, all_devices: Sequence[Any]
) -> None:
    torch, weights = import_module("torch"), book.start()
    found: Weights = {}

    def ours(process: Process) -> None:
        replicas = concise.replicate(weights, all_devices[:1], options("pytorch"))
        concise.train_batch(X, Y, replicas, all_devices[:1], LR, options("pytorch"))
        found.update(concise.export(replicas))

    concise.launch(ours, request(1), options("pytorch"))
    net = pytorch_net(d2l, weights)
    trainer = torch.optim.SGD(net.parameters(), LR / len(X))  # the package adds losses up
    images, labels = torch.as_tensor(X), torch.as_tensor(Y)
    d2l.train_batch_ch13(net, images, labels, concise.listing.loss, trainer, all_devices[:1])
    state = {k: net.state_dict()[renamed(k, PYTORCH)].numpy() for k in weights}
    layouts = import_module("frameworks.pytorch.layouts")
    expected = {k: layouts.to_canonical(k, values) for k, values in state.items()}
    # Not the running variance: the package keeps PyTorch's unbiased one.
    assert farthest_of(found, expected, ".weight", ".bias", ".running_mean") < 1e-11


@pytest.mark.only("mxnet")
def test_a_step_on_two_devices_is_that_of_train_batch_in_mxnet(
    d2l: Any, concise: Any, all_devices: Sequence[Any]
) -> None:
    mx, weights, devices = import_module("mxnet"), book.start(), all_devices[:2]
    replicas = concise.replicate(weights, devices, options("mxnet"))
    concise.train_batch(X, Y, replicas, devices, LR, options("mxnet"))
    net = mxnet_net(d2l, weights, devices)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": LR})
    images, labels = mx.np.array(X, X.dtype), mx.np.array(Y, Y.dtype)
    d2l.train_batch_ch13(net, images, labels, concise.listing.loss, trainer, devices)
    params = net._collect_params_with_prefix()
    state = {k: params[renamed(k, MXNET)].list_data()[0].asnumpy() for k in weights}
    layouts = import_module("frameworks.mxnet.layouts")
    expected = {k: layouts.to_canonical(k, values) for k, values in state.items()}
    found = concise.export(replicas)
    assert farthest_of(found, expected, ".weight", ".bias") < 1e-11
    # MXNet rounds the momentum to single precision: 2.4e-7 was measured.
    assert farthest_of(found, expected, ".running_mean", ".running_var") < 1e-6
