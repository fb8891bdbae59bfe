"""The primitives that a strategy needs; `frameworks/NAME/primitives.py` has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from common.base.arrays import Array

Tensor = Any
"""A tensor of the framework, on one device."""

Params = dict[str, Any]
"""Tensors of one device by their canonical names."""

Layer = Callable[[str, Tensor, Mapping[str, Tensor]], Tensor]
"""The output of a layer, by its name, from its input and parameters."""

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

    def forward(
        self, layer: Layer, names: Sequence[str], params: Mapping[str, Tensor], X: Tensor, /
    ) -> tuple[Tensor, list[Tensor]]:
        """The output of consecutive layers for `X`, and the input of each layer."""

    def backward(
        self,
        layer: Layer,
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
        half: str = "",
        /,
    ) -> tuple[Tensor, Params]:
        """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient.

        It computes `function(X, params)` again (recomputation). A `half`, "input" or "weights", is
        the gradient of only `X` or of only `params`.
        """

    def loss_and_grad(
        self, loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, count: int
    ) -> tuple[Tensor, Tensor]:
        """The sum of the losses divided by `count`, and its gradient by the logits."""

    def add(self, one: T, other: T, /) -> T:
        """The sum of two tensors, or of two dictionaries of tensors by name."""

    def maximum(self, one: Tensor, other: Tensor, /) -> Tensor:
        """The larger of each two numbers."""

    def cut(self, tensor: Tensor, sizes: Sequence[int], axis: int, /) -> Sequence[Tensor]:
        """The parts of a tensor, which have these sizes along an axis."""

    def join(self, parts: Sequence[Tensor], axis: int, /) -> Tensor:
        """The tensor that has these parts along an axis: the inverse of `cut`."""

    def reshape(self, tensor: Tensor, shape: tuple[int, ...], /) -> Tensor:
        """The same numbers in another shape; -1 is as many as there are."""

    def squares(self, tensors: Params, /) -> Tensor:
        """The sum of the squares of all numbers."""

    def clip(self, tensors: Params, squares: Tensor, most: float, /) -> Params:
        """Tensors of which all squares add up to `squares`, scaled to a norm of `most` at most."""

    def sgd_step(
        self, params: Params, velocities: Params, grads: Params, lr: float, momentum: float, /
    ) -> tuple[Params, Params]:
        """Updated parameters and velocities: v = momentum v + grad, w = w - lr v."""

    def adam_step(
        self, params: Params, moments: Params, grads: Params, /, lr: float, unbiased: Any
    ) -> tuple[Params, Params]:
        """Updated parameters and moments; `unbiased` are 1 - b^t of both moments in step t."""


class Net(Protocol):
    """The layers of a net in one framework: `lenet.py`, `gpt.py`, `moe.py`.

    `layer` is `finish` of `product`. A transformer's also `enter` by a norm, and blocks add their
    input; of its loss, `largest`, `exponentials_and_label` and `words_loss_and_grad` take the
    logits of some words. A mixture of experts has `probabilities`, `choices`, their `load` and
    `routes`, and the layer's parts between messages: `dispatch`, `experts`, `combine`; and
    `combine_backward` and `balance`, the auxiliary loss, whose gradients are written out.
    """

    def layer(self, name: str, X: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """The output of a layer for `X`."""

    def product(self, layers: Sequence[str], X: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """The partial sum of column- and row-parallel layers, from a device's slices of them."""

    def finish(self, name: str, Y: Tensor, params: Mapping[str, Tensor], /) -> Tensor:
        """What follows the sum over devices; the bias is added once."""

    def loss(self, logits: Tensor, y: Tensor, /) -> Tensor:
        """The cross-entropy of each label."""
