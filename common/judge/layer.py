"""Judges a tensor-parallel layer: its output and gradients, and what its devices send."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError
from common.compare.distances import distance
from common.diagnose.mistakes import parts_in
from common.judge.judgement import Cases, Setting, require
from common.judge.nets import SINGLE, allowed
from common.judge.readers import as_array, as_list, call
from common.parallel.shards import shard_bounds


class Group(list[Any]):
    """The devices of a layer: it counts the numbers that they send each other."""

    def __init__(self, setting: Setting, k: int) -> None:
        super().__init__(setting.devices[:k])
        self.setting, self.sent = setting, 0

    def send(self, array: Any, source: int, target: int) -> Any:
        """A copy of an array of the device `source` for the device `target`."""
        values = as_array(array, "what is sent")
        self.sent += values.size * (source != target)
        return self.setting.hand(values, target)

    def allreduce(self, arrays: Sequence[Any]) -> list[Any]:
        """The sum of the arrays of all devices, for each of them."""
        if len(arrays) != len(self):
            raise ValueError(f"allreduce takes {len(self)} arrays, not {len(arrays)}")
        received = [self.send(array, i, 0) for i, array in enumerate(arrays)]
        total = sum(received[1:], received[0])
        return [self.send(total, 0, i) for i in range(len(self))]


def judge_layer(candidate: Any, setting: Setting) -> Cases:
    """Judges `candidate(X, params, devices) -> Y, backward`."""
    for n, inputs, outputs in ((4, 6, 6), (5, 7, 8)):
        random = np.random.RandomState(n)
        shapes = [(n, inputs), (inputs, outputs), (outputs,), (n, outputs)]
        drawn = [random.standard_normal(shape) for shape in shapes]
        X, weight, bias, grad = (values.astype(setting.dtype or "float64") for values in drawn)
        for k in range(1, min(3, len(setting.devices)) + 1):
            yield f"{k} device{'s' * (k > 1)}, {n} examples, {inputs} inputs, {outputs} outputs"
            devices = Group(setting, k)
            params = {"weight": setting.hand(weight), "bias": setting.hand(bias)}
            result = call(candidate, setting.hand(X), params, devices)
            output, backward = as_list(result, "(Y, backward)", 2)
            added = np.broadcast_to(bias, (n, outputs))
            _judge("Y", output, _parts(X, weight, k) | {"the bias": added})
            forward = devices.sent
            result = call(backward, setting.hand(grad))
            input_grad, grads = as_list(result, "(dX, gradients)", 2)
            _judge("dX", input_grad, _parts(grad, weight.T, k))
            _judge("dW", _grad(grads, "weight"), {"the gradient": X.T @ grad})
            _judge("db", _grad(grads, "bias"), {"the gradient": grad.sum(axis=0)})
    sent = f"with {k}, they send {forward} numbers forward and {devices.sent - forward} backward"
    return f"Y, dX, dW and db are those of one device, over 1 to {k} devices; {sent}"


def _parts(a: Array, b: Array, k: int) -> dict[str, Array]:
    cuts = [slice(*bounds) for bounds in shard_bounds(len(b), k)]
    return {f"the part of device {i}": a[:, cut] @ b[cut] for i, cut in enumerate(cuts)}


def _grad(grads: Any, name: str) -> Any:
    if isinstance(grads, Mapping) and name in grads:
        return grads[name]
    if isinstance(grads, list | tuple) and all(isinstance(part, Mapping) for part in grads):
        return [part[name] for part in grads if name in part]
    raise RequestError(f"backward has no gradient {name}: (dX, dictionary) is due")


def _judge(what: str, value: Any, parts: Mapping[str, Array]) -> None:
    """Raises WrongError unless a result is the sum of some parts."""
    expected = np.sum([*parts.values()], axis=0)
    arrays = _assembled(what, value, expected.shape)
    sums = distance(np.sum(arrays, axis=0), expected)[0] < SINGLE
    for device, array in enumerate(arrays):
        text = "is only a part of the sum over devices" if sums else parts_in(array, parts)
        where = f"{what} on device {device}" if len(arrays) > 1 else what
        require(distance(array, expected)[0] < allowed(array), f"{where} {text}", what)


def _assembled(what: str, value: Any, shape: tuple[int, ...]) -> list[Array]:
    """A whole array; or the whole copies of all devices, or what their slices make."""
    several = isinstance(value, list | tuple) and len(value) > 0
    arrays = [as_array(part, what) for part in (value if several else [value])]
    for axis in range(len(shape)):
        if any(array.shape != shape for array in arrays):
            with suppress(ValueError):
                whole = np.concatenate(arrays, axis)
                arrays = [whole] if whole.shape == shape else arrays
    for array in arrays:
        require(array.shape == shape, f"{what} has shape {array.shape}, not {shape}", "shape")
    return arrays
