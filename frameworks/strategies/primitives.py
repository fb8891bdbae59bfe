"""The primitives that a strategy needs; `frameworks/NAME/primitives.py` has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from common.base.arrays import Array
from common.models.nets import Shapes

Tensor = Any
"""A tensor of the framework, on one device."""

Params = dict[str, Any]
"""Tensors of one device by their canonical names."""

R = TypeVar("R")
T = TypeVar("T")


class Primitives(Protocol):
    """The functions of one framework. They may be compiled: none of them moves a tensor unasked."""

    def place(self, values: Array, device: Any, /) -> Tensor:
        """A copy of a host array on a device."""

    def copy_to(self, tensors: T, device: Any, /) -> T:
        """A copy of a tensor, or of a dictionary of tensors, on another device."""

    def partial(self, function: Callable[..., R], *first: Any) -> Callable[..., R]:
        """`function` with its first arguments; the same object for the same arguments."""

    def on_each_device(
        self, function: Callable[..., R], *arguments: Iterable[Any], **same: Any
    ) -> list[R]:
        """The results of `function` for the arguments of each device."""

    def layer(self, name: str, X: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """The output of a layer for `X`, with its activation and pooling."""

    def product(self, name: str, X: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """The partial sum of a row-parallel layer for some input channels, without its bias."""

    def finish(self, name: str, Y: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """The output of a row-parallel layer from the sum over devices; the bias is added once."""

    def forward(
        self, names: Sequence[str], params: Mapping[str, Tensor], X: Tensor, /
    ) -> tuple[Tensor, list[Tensor]]:
        """The output of consecutive layers for `X`, and the input of each layer."""

    def backward(
        self,
        names: Sequence[str],
        params: Mapping[str, Tensor],
        inputs: Sequence[Tensor],
        grad: Tensor,
        /,
    ) -> tuple[Tensor, Params]:
        """The gradients of the first input and of the parameters, given the output's gradient."""

    def vjp(
        self,
        function: Callable[[Tensor, Params], Tensor],
        X: Tensor,
        params: Mapping[str, Tensor],
        grad: Tensor,
        /,
    ) -> tuple[Tensor, Params]:
        """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient.

        It computes `function(X, params)` again (recomputation).
        """

    def loss_and_grad(self, logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
        """The sum of the losses divided by all `examples`, and its gradient by the logits."""

    def add(self, one: T, other: T, /) -> T:
        """The sum of two tensors, or of two dictionaries of tensors by name."""

    def split(self, tensors: Params, devices: int, /) -> list[Params]:
        """The slices of flattened tensors, one for each device; sizes differ by at most one."""

    def concat(self, slices: Sequence[Params], shapes: Shapes, /) -> Params:
        """The tensors of these shapes: the inverse of `split`."""

    def sgd_step(
        self, params: Params, velocities: Params, grads: Params, lr: float, momentum: float, /
    ) -> tuple[Params, Params]:
        """Updated parameters and velocities: v = momentum v + grad, w = w - lr v."""
