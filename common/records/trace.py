"""The arrays that a run leaves, from which single steps can be recomputed.

By name in the run's tensors: `trace/weights/T/NAME`, the weights after step T (0: the
initial ones); `trace/momentum/T/NAME`, the velocities after step T > 0, with momentum, and with
Adam `trace/variance/T/NAME`, also after the last step;
`trace/statistics/T/NAME`, the running statistics then of each of several devices;
`trace/images/T` and `trace/labels/T`, the minibatch of step T, as bytes. `trace/bias` has the last
layer's bias before training and after each step (steps + 1, 10): an update that is left out shows.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights, on_host, part
from common.data.dataset import Bytes
from common.models.nets import Shapes, last_bias, trainable
from common.records.record import Record
from common.settings.config import ITEMSIZE, Config

PROBE: Final = 100
"""Examples in the probe batch: the first of the test set."""

LAYERS_PROBE: Final = 10
"""Examples whose output of each layer a run keeps."""

CHECKED: Final = 25
"""Test images at the end of the set whose predictions are recomputed, and as many drawn ones."""

WHOLE, MANY, FIRST, ENDS = 20, 60, 3, 10
"""A run of 20 steps keeps all, a longer one the first 60 if they are `CHEAP`, else the first 3;
the last of 10 epochs, and the next one after the first epoch, at whose end a state may get lost."""

CHEAP: Final = 3 * 10**8
"""The most operations of a step that takes milliseconds to recompute: LeNet's with 20 images."""

MOST_BYTES: Final = 32 * 2**20
"""The most bytes of weights and velocities that a run keeps."""

MOST_OPERATIONS: Final = 15 * 10**10
"""The most operations to recompute its steps: some ten seconds."""


def traced_steps(config: Config) -> list[int]:
    """The steps that are kept, counted from 1; none if the net is large."""
    steps, epochs = config.number_of_steps(), config.number_of_epochs()
    apart = -(epochs // -ENDS) if epochs > ENDS else 1
    ends = [config.steps_before(epoch + 1) for epoch in range(0, epochs, apart)]
    operations = config.options.operations() * config.batch_size
    most = MANY if operations <= CHEAP else WHOLE if steps <= WHOLE else FIRST
    first = [*range(1, 1 + min(steps, most))]
    later = sorted({*ends, min(ends[0] + 1, steps)})
    # The most important ones come first: of the first step, the gradient is compared, too.
    wanted = [*dict.fromkeys([1, steps, *first[:FIRST], *later, *first])]
    kept = [*config.shapes().values(), *config.state().values()]
    size = sum(math.prod(shape) for shape in kept) * ITEMSIZE[config.dtype]
    while len(around(wanted)) * size > MOST_BYTES or len(wanted) * operations > MOST_OPERATIONS:
        wanted.pop()
    return sorted(wanted)


def around(steps: Sequence[int]) -> list[int]:
    """The numbers of steps done just before and just after these steps."""
    return sorted({step - back for step in steps for back in (0, 1)})


def snapshots(config: Config) -> list[int]:
    """The steps after which weights are kept, 0 for the initial ones, but the last."""
    last = config.number_of_steps()
    return [step for step in around(traced_steps(config)) if step < last]


def states(config: Config) -> list[int]:
    """The steps after which the optimizer's state is kept: with Adam, also the last one."""
    last = [config.number_of_steps()] if len(config.options.state) > 1 else []
    return [step for step in [*snapshots(config), *last] if step]


def checked_images(config: Config) -> Array:
    """The places (m,) of the test images whose predictions are recomputed, in order."""
    n = config.test_examples
    drawn = np.random.RandomState([config.seed, n]).permutation(n)[:CHECKED]
    return np.union1d(drawn, np.arange(n)[-CHECKED:])


def statistics(config: Config) -> Shapes:
    """Names and shapes of a device's running statistics."""
    return {name: shape for name, shape in config.shapes().items() if not trainable(name)}


def minibatch_size(config: Config, step: int) -> int:
    place = (step - 1) % config.steps_of_whole()
    return config.examples_in(place + 1) - config.examples_in(place)


def expected_arrays(record: Record) -> dict[str, tuple[tuple[int, ...], str]]:
    """Name, shape and dtype of every array that a run must leave."""
    config = record.config
    probe, layers = (min(most, config.test_examples) for most in (PROBE, LAYERS_PROBE))
    task = config.options.task
    shapes: Shapes = {f"logits/{when}": (probe, *task.logits) for when in ("before", "after")}
    for name, shape in config.options.layer_shapes().items():
        shapes |= {f"layers/{when}/{name}": (layers, *shape) for when in ("before", "after")}
    for name, shape in config.shapes().items():
        shapes[f"weights/{name}"] = shape
        if trainable(name):
            shapes[f"gradients/{name}"] = shape
    last = config.shapes()[last_bias(config.shapes())]
    shapes["trace/bias"] = config.number_of_steps() + 1, *last
    shapes["test/logits"] = config.test_examples, *task.logits
    for step in snapshots(config):
        shapes |= {f"trace/weights/{step}/{k}": shape for k, shape in config.shapes().items()}
    for step in states(config):
        for key, shape in config.state().items():
            kind, _, name = key.partition("/")
            shapes[f"trace/{kind}/{step}/{name}"] = shape
    for step in around(traced_steps(config))[1:]:
        # Earlier steps of a resumed run may have been on fewer devices, or more.
        before = (resumed.devices for resumed in record.resumed if step <= resumed.step)
        devices = next(before, config.devices)
        if devices > 1:
            own = statistics(config).items()
            shapes |= {f"trace/statistics/{step}/{k}": (devices, *shape) for k, shape in own}
    integers = {
        "probe/images": (probe, *task.example),
        "test/images": (len(checked_images(config)), *task.example),
        "test/labels": (config.test_examples, *task.label),
        "test/predictions": (len(record.epochs), config.test_examples, *task.label),
    }
    for step in traced_steps(config):
        examples = minibatch_size(config, step)
        integers[f"trace/images/{step}"] = (examples, *task.example)
        integers[f"trace/labels/{step}"] = (examples, *task.label)
    return {
        **{name: (shape, config.dtype) for name, shape in shapes.items()},
        **{name: (shape, "uint8") for name, shape in integers.items()},
        "losses": ((config.number_of_steps(),), "float64"),
    }


class Trace:
    """Collects the trace of a run while it trains."""

    def __init__(self, config: Config, weights: Mapping[str, Array]) -> None:
        self.steps, self.snapshots = set(traced_steps(config)), set(snapshots(config))
        self.around, self.dtype = set(around(traced_steps(config))), config.dtype
        self.states, self.kinds = set(states(config)), config.options.state
        self.asks = config.state() or (statistics(config) if config.devices > 1 else {})
        self.tensors: Weights = {"trace/bias": np.array([weights[last_bias(config.shapes())]])}
        self.biases: list[Any] = []
        self.after(0, weights, {})

    def before(self, step: int, images: Bytes, labels: Bytes) -> None:
        if step in self.steps:
            self.tensors |= {f"trace/images/{step}": images, f"trace/labels/{step}": labels}

    def after(self, step: int, weights: Mapping[str, Array], saved: Mapping[str, Array]) -> None:
        # Statistics may have another dtype than weights.
        own = {k: v.astype(self.dtype) for k, v in saved.items() if not trainable(k)}
        kept = {"statistics": own}
        if step in self.snapshots:
            kept["weights"] = dict(weights)
        if step in self.states:
            kept |= {kind: part(saved, f"{kind}/") for kind in self.kinds}
        for kind, arrays in kept.items():
            self.tensors |= {f"trace/{kind}/{step}/{k}": np.array(v) for k, v in arrays.items()}

    def settle(self) -> None:
        """Reads the biases (10,) of the steps since the last call from their devices."""
        rows = self.tensors["trace/bias"], *(on_host(bias)[None] for bias in self.biases)
        self.tensors["trace/bias"] = np.concatenate(rows)
        self.biases.clear()

    def state(self, step: int) -> Weights:
        """Parameters and velocities after a step, as a checkpoint names them; none if not kept."""
        weights = part(self.tensors, f"trace/weights/{step}/")
        found = {name: values for name, values in weights.items() if trainable(name)}
        for kind in self.kinds:
            state = part(self.tensors, f"trace/{kind}/{step}/")
            found |= {f"{kind}/{name}": values for name, values in state.items()}
        return found
