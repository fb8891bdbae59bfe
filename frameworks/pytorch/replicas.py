"""What the harness needs of the concise chapter's replicas in PyTorch, beside the listing."""

from collections.abc import Sequence

from torch import distributed as dist

from common.base.arrays import Array, Weights
from frameworks.pytorch.activations import layer_outputs
from frameworks.pytorch.batch_norm import unmoved_statistics
from frameworks.pytorch.concise import Replicas, forward_backward
from frameworks.pytorch.layouts import load_weights, on_host, own_weights, to_canonical


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; running statistics stay as they are."""
    with unmoved_statistics(replicas.net.module):
        forward_backward(X, y, replicas, examples)
    grads = {name: param.grad for name, param in replicas.net.module.named_parameters()}
    return {name: to_canonical(name, on_host(g)) for name, g in grads.items() if g is not None}


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device of this process: with DP, the first one's."""
    return [own_weights(replicas.net.module) for _ in replicas.devices]


def put(everyones: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    load_weights(replicas.net.module, everyones[dist.get_rank()])


def activations(X: Array, replicas: Replicas) -> Weights:
    """What each layer with weights makes of a batch on the first device."""
    return layer_outputs(X, replicas.net.module, replicas.devices[0])
