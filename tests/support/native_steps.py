"""What tests let the frameworks' own ways to split do, in as many processes as they need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from momentum_steps import MOST_DEVICES, RATES, OneDevice, numbers
from scratch_steps import batches, far

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import Array, Weights, part
from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.compare import numpy_nets
from common.models.weights_file import save_weights

STEPS: Sequence[tuple[Array, Array]] = [*batches(2, 11, "float64"), *batches(1, 2, "float64")]
"""The third leaves a device, or a whole row of them, without an example."""

CASES = {
    name: StrategiesOptions(name, native=True, schedule="gpipe", microbatches=4)
    for name in STRATEGIES
}


def cases(framework: str, devices: int) -> dict[str, StrategiesOptions]:
    """By name: on three devices every strategy, uneven, and on four some on a mesh."""
    if devices == 4:
        return {
            f"{name} on a mesh": replace(options, replicas=2)
            for name, options in CASES.items()
            if name not in ("data", "zero2")
        }
    further = {"tensor, uneven": replace(CASES["tensor"], depth=1)}
    if framework == "pytorch":
        further["1f1b"] = replace(CASES["pipeline"], schedule="1f1b")
    return CASES | further


@dataclass(frozen=True)
class Trained:
    """A worker: takes the steps of every case, and of one that was resumed by the last of them."""

    framework: str
    devices: int
    folder: Path

    def __call__(self, process: Process) -> None:
        """Saves what a case gives."""
        chapter = backend(self.framework, "strategies")
        # In the tests' own process, JAX has the devices that it got at the start: `all_devices`.
        count = self.devices if process.count > 1 else MOST_DEVICES
        local = chapter.devices(process, DeviceRequest(count, "cpu", 1)).local
        devices = local[: self.devices]
        for name, options in cases(self.framework, self.devices).items():
            replicas = chapter.replicate(numbers(options), devices, options)
            grads = chapter.gradients(*STEPS[0], replicas, devices, options)
            found = {f"gradients/{key}": value for key, value in grads.items()}
            losses, before = [], dict[str, Array]()
            for (X, y), lr in zip(STEPS, RATES, strict=True):
                before = chapter.save(replicas)
                losses.append(float(chapter.train_batch(X, y, replicas, devices, lr, options)))
            after = chapter.save(replicas)
            again = chapter.replicate(numbers(options), devices, options)
            chapter.predict(STEPS[-1][0], again, devices)  # it leaves nothing behind
            chapter.restore(before, again, devices)
            chapter.train_batch(*STEPS[-1], again, devices, RATES[-1], options)
            for key, values in chapter.save(again).items():
                assert values.tobytes() == after[key].tobytes(), f"{name}: {key} was not resumed"
            found |= {f"after/{key}": value for key, value in after.items()}
            found |= {
                f"logits/{n}": chapter.predict(STEPS[0][0][:n], replicas, devices) for n in (2, 7)
            }
            if process.rank == 0:
                save_weights(
                    self.folder / f"{name}.safetensors", found | {"losses": np.array(losses)}
                )


def require_right(found: Weights, options: StrategiesOptions, limit: float) -> None:
    """Asserts that all of a case is what NumPy finds on one device."""
    weights = numbers(options)
    right = OneDevice(weights)
    expected = numpy_nets.step("strategies", *STEPS[0], weights, [(0, 11)]).gradients
    assert far(part(found, "gradients/"), expected) < limit
    losses = [right.step(X, y, lr) for (X, y), lr in zip(STEPS, RATES, strict=True)]
    np.testing.assert_allclose(found["losses"], losses, rtol=limit, atol=0)
    after = part(found, "after/")
    velocity = {f"momentum/{name}": values for name, values in right.velocity.items()}
    assert far(after, {**right.weights, **velocity}) < limit
    for n, logits in part(found, "logits/").items():
        exact = numpy_nets.logits("strategies", STEPS[0][0][: int(n)], right.weights)
        np.testing.assert_allclose(logits, exact, rtol=0, atol=limit)
