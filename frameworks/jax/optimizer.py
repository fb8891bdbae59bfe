"""Optax's optimizer, as one program for all parameters."""

import jax
import optax

from frameworks.jax.layouts import State


@jax.jit
def sgd(params: State, grads: State, lr: float) -> State:
    """The parameters after one step of stochastic gradient descent."""
    optimizer = optax.sgd(lr)
    updates, _ = optimizer.update(grads, optimizer.init(params))
    stepped: State = optax.apply_updates(params, updates)
    return stepped
