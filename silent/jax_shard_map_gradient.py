"""A gradient inside `shard_map` is added once too often, or not at all, as `check_vma` says.

Written: the gradient of the mean loss over two devices, for a weight that both have.
Expected: the gradient of the mean loss over all examples.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.lax import pcast, pmean
from jax.sharding import AxisType, PartitionSpec as P

from silent.report import report

jax.config.update("jax_num_cpu_devices", 2)
X = jnp.array([1.0, 2.0, 3.0, 4.0])


def loss(w: jax.Array, X: jax.Array) -> jax.Array:
    return (w * X).mean()


def mean_of_gradients(w: jax.Array, X: jax.Array) -> jax.Array:
    return pmean(jax.grad(loss)(w, X), "data")


def gradient_of_mean(w: jax.Array, X: jax.Array) -> jax.Array:
    return jax.grad(lambda w: pmean(loss(w, X), "data"))(w)


def mean_after_pcast(w: jax.Array, X: jax.Array) -> jax.Array:
    return mean_of_gradients(pcast(w, "data", to="varying"), X)


def on_two(gradient: Callable[..., jax.Array], check: bool) -> jax.Array:
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    specs = P(), P("data")
    split = jax.shard_map(gradient, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=check)
    return split(jnp.array(0.0), X)


if __name__ == "__main__":
    results = {
        "pmean(grad(loss))": on_two(mean_of_gradients, check=True),
        "grad(pmean(loss)), check_vma=False": on_two(gradient_of_mean, check=False),
    }
    remedies = {
        "grad(pmean(loss))": on_two(gradient_of_mean, check=True),
        "pcast(w), then pmean(grad(loss))": on_two(mean_after_pcast, check=True),
        "pmean(grad(loss)), check_vma=False": on_two(mean_of_gradients, check=False),
    }
    report(f"jax {jax.__version__}", X.mean(), results, remedies)
