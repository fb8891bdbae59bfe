"""A slice of every layer in each process, by `parallelize_module` and, for images, `local_map`.

DTensor's own convolution gives wrong numbers: its slices have to be computed by hand.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)

from common.base.arrays import Array
from common.parallel.replicas import joined
from frameworks.pytorch import hosts
from frameworks.pytorch.kernels import avg_pool2d, conv2d, relu
from frameworks.pytorch.layouts import on_host
from frameworks.pytorch.native.training import Training, cross_entropy, on_device

WHOLE, OUTPUTS, INPUTS, SUMMAND = Replicate(), Shard(0), Shard(1), Partial()


class Sliced(Training):
    """Each process of a row has a slice of each layer, and the same part of it as its column."""

    def split(self, net: nn.Sequential) -> nn.Module:
        """A slice of every layer."""
        self.slices = self.mesh["part"]
        slice_images(net, self.slices)
        return parallelize_module(net, self.slices, dense_styles(self.plan.layers[2:]))

    def forward(self, X: Tensor) -> Tensor:
        """The logits of a batch, whole in each process of the row."""
        _, _, *dense = self.net.children()
        Y = self.convolutions(X)
        for layer in dense:
            Y = layer(Y)
        return Y.full_tensor() if isinstance(Y, DTensor) else Y

    def convolutions(self, X: Tensor) -> Tensor:
        """The output of both convolutions: column-parallel, then row-parallel."""
        conv1, conv2, *_ = self.net.children()
        assert isinstance(conv1, nn.Conv2d)
        assert isinstance(conv2, nn.Conv2d)
        summand = local_map(
            partial_sum,
            out_placements=[SUMMAND],  # a tuple would be one layout for each of several outputs
            in_placements=([WHOLE], [OUTPUTS], [OUTPUTS], [INPUTS]),
            device_mesh=self.slices,
        )(DTensor.from_local(X, self.slices, [WHOLE]), conv1.weight, conv1.bias, conv2.weight)
        total = summand.redistribute(placements=[WHOLE]).to_local()
        assert isinstance(conv2.bias, DTensor)
        return avg_pool2d(relu(total + conv2.bias.to_local()[:, None, None]))

    def forward_backward(self, X: Array, y: Array) -> Tensor:
        """The mean loss of a minibatch; its gradient is left in the parameters."""
        self.optimizer.zero_grad()
        here = self.plan.rows_of(len(X))[self.mesh.get_local_rank("replica")]
        X_row, y_row = on_device((X[here], y[here]), self.device)
        mean_loss = X_row.new_zeros(())
        for microbatch in self.plan.microbatches_of(len(X_row)):
            loss = cross_entropy(self.forward(X_row[microbatch]), y_row[microbatch], len(X))
            loss.backward()
            mean_loss += loss.detach()
        if self.plan.replicas > 1:
            columns = self.mesh.get_group("replica")
            for param in self.net.parameters():
                assert isinstance(param.grad, DTensor)
                dist.all_reduce(param.grad.to_local(), group=columns)
            dist.all_reduce(mean_loss, group=columns)
        return mean_loss

    @torch.no_grad()
    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch; in a row, each process computes them all."""
        here = self.plan.rows_of(len(X))[self.mesh.get_local_rank("replica")]
        logits = on_host(self.forward(*on_device([X[here]], self.device)))
        if self.mesh.get_local_rank("part"):  # another one of the row has them, too
            logits = logits[:0]
        return joined(logits, hosts.gathered)


def partial_sum(X: Tensor, weight1: Tensor, bias1: Tensor, weight2: Tensor) -> Tensor:
    """The partial sum of the second convolution over this process's channels, without bias."""
    h1 = avg_pool2d(relu(conv2d(X, weight1, bias1)))
    return conv2d(h1, weight2, weight2.new_zeros(len(weight2)))


def slice_images(net: nn.Module, slices: DeviceMesh) -> None:
    """Splits the first convolution by its outputs, and the second one by its inputs."""
    conv1, conv2, *_ = net.children()
    layouts = (conv1, "weight", OUTPUTS), (conv1, "bias", OUTPUTS), (conv2, "weight", INPUTS)
    for layer, name, layout in (*layouts, (conv2, "bias", WHOLE)):
        split = distribute_tensor(getattr(layer, name).data, slices, [layout], src_data_rank=None)
        setattr(layer, name, nn.Parameter(split))


def dense_styles(names: Sequence[str]) -> dict[str, ParallelStyle]:
    """Dense layers in turn by their outputs and by their inputs, so that one sum joins two."""
    styles: dict[str, ParallelStyle] = {}
    for column, row in zip(names[::2], names[1::2], strict=False):
        styles |= {column: ColwiseParallel(use_local_output=False), row: RowwiseParallel()}
    if len(names) % 2:
        styles[names[-1]] = ColwiseParallel(use_local_output=False)
    return styles
