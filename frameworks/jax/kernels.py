"""LeNet's operations in the form that is fast in JAX (docs/performance.md), for many devices."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import jax
from jax import Array as Tensor, numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array
from common.parallel.shards import shard_bounds

R = TypeVar("R")


def images(X: Tensor) -> Tensor:
    """Images (n, 1, rows, columns) with images last: a step takes 114 ms in place of 140."""
    return X.transpose(1, 2, 3, 0)


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (in, rows, columns, n) with `weight` (out, in, r, c), without padding."""
    # By a product of matrices, as the gradient of `lax.conv` is slow on a CPU.
    out, channels, r, c = weight.shape
    rows, columns, n = X.shape[1] - r + 1, X.shape[2] - c + 1, X.shape[3]
    # By rows, then by columns: 10 slices, not 25, for a kernel of 5 x 5, compile faster.
    strips = jnp.stack([X[:, i : i + rows] for i in range(r)], axis=1)
    patches = jnp.stack([strips[..., j : j + columns, :] for j in range(c)], axis=2)
    matrix = patches.reshape(channels * r * c, -1)
    Y = (weight.reshape(out, -1) @ matrix).reshape(out, rows, columns, n)
    return Y + bias[:, None, None, None]


def relu(X: Tensor) -> Tensor:
    """The larger one of each number and 0."""
    return jax.nn.relu(X)


def avg_pool2d(X: Tensor) -> Tensor:
    """The means of 2 x 2 windows of `X` (channels, rows, columns, n); odd edges are dropped."""
    channels, rows, columns, n = X.shape[0], X.shape[1] // 2, X.shape[2] // 2, X.shape[3]
    windows = X[:, : 2 * rows, : 2 * columns].reshape(channels, rows, 2, columns, 2, n)
    return windows.mean(axis=(2, 4))


def dense(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`X` (n, in), or images flattened channels first, times `weight` (in, out), plus `bias`."""
    if X.ndim == 4:
        X = X.reshape(len(weight), -1).T
    return X @ weight + bias


@jax.jit
def descended(params: dict[str, Tensor], grads: dict[str, Tensor], lr: float) -> dict[str, Tensor]:
    """The parameters after one step of stochastic gradient descent, in one program for them all."""
    return {name: param - lr * grads[name] for name, param in params.items()}


def scatter(array: Array, devices: Sequence[jax.Device]) -> list[Tensor]:
    """The shards of an array, each on its device; their lengths differ by at most one."""
    bounds = shard_bounds(len(array), len(devices))
    return [jax.device_put(array[a:b], d) for (a, b), d in zip(bounds, devices, strict=True)]


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """The results of `function` for the arguments of each device.

    Consecutive devices with arguments of the same shapes share a program: there are two at most.
    """
    calls = zip(*arguments, strict=True)
    alike = [list(group) for _, group in groupby(calls, key=shapes)]
    return [result for group in alike for result in in_one_program(function, group, same)]


def shapes(call: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """The shape of every array among a device's arguments."""
    return [array.shape for array in jax.tree.leaves(call)]


def in_one_program(
    function: Callable[..., R], calls: Sequence[tuple[Any, ...]], same: dict[str, Any]
) -> list[R]:
    """The result of each device, for arguments of the same shapes."""
    if len(calls) == 1:
        return [function(*calls[0], **same)]
    mesh = Mesh([jax.tree.leaves(call)[0].device for call in calls], ("device",))
    layout = NamedSharding(mesh, P())

    def join(*parts: Tensor) -> Tensor:
        return jax.make_array_from_single_device_arrays(parts[0].shape, layout, parts)

    joined = program(function, mesh, jax.tree.map(join, *calls), same)
    leaves, structure = jax.tree.flatten(joined)
    parts = zip(*([part.data for part in leaf.addressable_shards] for leaf in leaves), strict=True)
    return [jax.tree.unflatten(structure, local) for local in parts]


# Each array is declared replicated, so nothing is moved.
@partial(jax.jit, static_argnums=(0, 1))
def program(
    function: Callable[..., R], mesh: Mesh, call: tuple[Any, ...], same: dict[str, Any]
) -> R:
    """Maps `function` over the devices of the mesh, each with its local arguments."""

    @jax.shard_map(mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    def on_device(call: tuple[Any, ...], same: dict[str, Any]) -> R:
        return function(*call, **same)

    result: R = on_device(call, same)
    return result
