"""Judges steps of training, and says what float32 or a single device hides."""

import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import signature
from math import inf
from operator import attrgetter
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RequestError
from common.compare import numpy_nets
from common.compare.distances import distance, first_near
from common.compare.limits import EXACT
from common.diagnose.mistakes import Update, flat, mistake, scaled
from common.judge.clipping import coefficient, norm, wrongly_clipped
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.nets import FLIPPED, MIXED, NETS, SINGLE, allowed, examples, random_weights
from common.judge.readers import as_array, call
from common.models.nets import MOMENTUM, Shapes, trainable
from common.terminal.tables import listed

ROUNDED: Final = 10
"""Times NumPy's distance in float32: what float32 in a part of a step explains."""

MASKS: Final = {12: "111100101010", 11: "10110100111", 9: "101110000"}
"""Which examples count: shards have different numbers of them, the last one none."""

WRAPPERS: Final[dict[tuple[str, str], Callable[[Any], int]]] = {
    # Without a GPU, it has no device_ids, and calls the net once.
    ("torch", "nn.DataParallel"): lambda net: len(net.device_ids) or 1,
    ("tensorflow", "distribute.Strategy"): lambda strategy: strategy.num_replicas_in_sync,
    ("jax", "sharding.Mesh"): lambda mesh: mesh.size,  # pmap makes one, too
    # On other backends than JAX, it splits nothing.
    ("keras", "distribution.DataParallel"): lambda split: (
        split.device_mesh.devices.size if sys.modules["keras"].config.backend() == "jax" else 1
    ),
}
"""The number of devices of an object, by module and class."""


def judge_step(candidate: Any, setting: Setting) -> Cases:
    """Judges an object with `start(weights)`, `step(X, y, lr) -> loss` and `weights()`."""
    yield "the start"
    candidate = call(candidate) if isinstance(candidate, type) else candidate
    start, step, weights = (call(getattr, candidate, name) for name in ("start", "step", "weights"))
    (chapter, shapes, sizes), dtype = NETS[setting.net], setting.dtype or "float64"
    masked, clipped, doubt = _takes_mask(step), list[str](), ""
    if setting.net != "lenet" and (masked or setting.clip < inf):
        raise RequestError("masks and clipping are judged with --net lenet")
    initial = random_weights(setting.net, dtype)
    call(start, {name: setting.hand(values) for name, values in initial.items()})
    after = _weights(weights, shapes)
    for name, values in initial.items():
        text = f"{name} of weights() is not what start() was handed"
        require(distance(after[name], values)[0] < allowed(after[name]), text, "start")
    previous: Update | None = None
    for number, (count, lr) in enumerate(zip(sizes, (0.1, 0.05, 0.2), strict=True), 1):
        yield f"step {number}, of {count} examples"
        before, (X, y) = after, examples(count, dtype, setting.net)
        mask = np.array([*(MASKS[count] if masked else "1" * count)], int).astype(dtype)
        every = Update(chapter, X, y, before, {})
        if setting.clip < inf:
            every = _with_norm(every, mask, setting.clip, above=number != 2)
        handed = [setting.hand(every.X), setting.hand(y), lr, setting.hand(mask)]
        loss = as_array(call(step, *handed[: 3 + masked]), "the loss")
        after = _weights(weights, shapes)
        changes = {k: before[k].astype("float64") - after[k] for k in filter(trainable, shapes)}
        every = replace(every, applied={name: change / lr for name, change in changes.items()})
        taken = Taken(every, mask, after, lr, setting.clip, previous)
        doubt = taken.doubt() or doubt
        clipped += [str(number)] if taken.factor < 1 else []
        previous, exact = taken.update, taken.exact
        require(loss.size == 1, f"the loss has shape {loss.shape}, not that of a number", "loss")
        n, off = len(previous.X), abs(loss.item() - exact.loss) / exact.loss_scale
        text = f"the weights are right, but the loss is {scaled(loss.item() / exact.loss, n, {})}"
        require(off <= allowed(loss), text, "loss")
        doubt = doubt or "the loss is" * (off > EXACT)
        for name, expected in exact.statistics.items():
            off = _off_movement(name, before[name], after[name], expected)
            text = f"{name} is off by {off:.1e} of how far it moves"
            require(off < (MIXED if allowed(after[name]) == MIXED else 1e-3), text, "statistics")
            doubt = doubt or f"{name} is" * (off > EXACT)
    seen = wrappers()
    buts = [f"{name} has 1 device here" for name, devices in seen.items() if devices == 1]
    hint = "alone" if buts else "float32" if doubt and dtype == "float64" else "right"
    buts += [f"{doubt} only as exact as float32"] if doubt and dtype == "float64" else []
    text = f"losses and weights of {setting.net} after each of 3 steps are those of one device"
    text += f", clipped in step {listed(clipped)}" * bool(clipped)
    text += "".join(f"; {name} has {k} devices" for name, k in seen.items() if k > 1)
    return text, listed(buts), hint


def wrappers() -> dict[str, int]:
    """On how many devices a framework's wrappers run here: some do nothing where there is one.

    The most of the objects of each class in this process; an empty mesh is none.
    """
    loaded = [item for item in WRAPPERS.items() if item[0][0] in sys.modules]
    kinds = [(attrgetter(name)(sys.modules[root]), count) for (root, name), count in loaded]
    seen: dict[str, int] = {}
    for thing in gc.get_objects():
        name, parents = type(thing).__name__, type(thing).__mro__
        for count in (count for kind, count in kinds if kind in parents and name[0] != "_"):
            seen[name] = max(count(thing), seen.get(name, 0))
    group = sys.modules.get("torch.distributed")
    if group and group.is_available() and group.is_initialized():
        seen["torch.distributed"] = group.get_world_size()
    return {name: count for name, count in seen.items() if count}


def _takes_mask(step: Any) -> bool:
    """Whether a step has a fourth parameter that has to be given, or is called a mask."""
    with suppress(TypeError, ValueError):  # it shows no parameters
        for p in [*signature(step).parameters.values()][3:4]:
            return "mask" in p.name or (p.default, p.kind) == (p.empty, p.POSITIONAL_OR_KEYWORD)
    return False


def _with_norm(update: Update, mask: Array, clip: float, above: bool) -> Update:
    """Images, scaled by a power of 2, whose gradient is clipped; or not, if that can be."""
    for power in range(24):
        images = replace(update, X=update.X * 2.0 ** (power if above else -power))
        size = norm(_counted(images, mask).exact().gradients)
        if (size > 2 * clip) if above else (size < clip):
            return images
    if above:
        raise RequestError(f"no gradient is as large as {clip:g}: clip by less")
    return update


def _counted(update: Update, mask: Array) -> Update:
    return replace(update, X=update.X[mask > 0], y=update.y[mask > 0])


def _layers(names: Sequence[str]) -> list[str]:
    return [*dict.fromkeys(name.rpartition(".")[0] for name in names)]


@dataclass
class Taken:
    """A step on `every` example, of which those of the mask count, and the weights after it.

    `update` is what would have been applied without clipping.
    """

    every: Update
    mask: Array
    after: Weights
    lr: float
    clip: float
    previous: Update | None

    def __post_init__(self) -> None:
        self.clipped = _counted(self.every, self.mask)
        self.exact, applied = self.clipped.exact(), self.clipped.applied
        self.factor = coefficient(applied, self.exact.gradients, self.clip)
        self.update = replace(
            self.clipped, applied={k: v / self.factor for k, v in applied.items()}
        )

    def is_single(self, name: str) -> bool:
        """Whether a weight is of float32; one that has not changed tells nothing."""
        return bool(self.every.applied[name].any() and allowed(self.after[name]) > MIXED)

    def off(self, name: str, times: float = 1.0) -> float:
        """How far an update is from the gradient, but for the rounding of the weight."""
        scale, largest = self.exact.scales[name], float(np.abs(self.after[name]).max())
        if not np.isfinite(largest):
            return inf
        eps = np.finfo("float32" if self.is_single(name) else "float64").eps
        applied, expected = self.update.applied[name] * times, self.exact.gradients[name]
        rounding = 2 * float(eps) * largest / (self.lr * self.factor * scale)
        return distance(applied, expected, scale)[0] - rounding

    def doubt(self) -> str:
        """What is only as exact as float32; raises WrongError where that explains no update."""
        off = {name: self.off(name) for name in self.update.applied}
        single = [name for name in off if self.is_single(name)]
        most = FLIPPED if self.exact.statistics else SINGLE
        if wrong := [name for name in off if off[name] > (most if name in single else MIXED)]:
            self.fail(wrong, self.explained(wrong))
        rough = [name for name in off if off[name] > EXACT and name not in single]
        rate = self.lr / float(np.float32(self.lr))
        if rough and all(self.off(name, rate) <= EXACT for name in rough):
            return "the rate is"
        layers = _layers([name for name in rough if self.ends_as_float32(name)])
        if rough:
            text, far = self.explained(rough), self.far_in_float32()
            wrong = [k for k in rough if off[k] > far[k] and not {*_layers([k])} & {*layers}]
            if text or wrong:
                self.fail(wrong or rough, text)
        layers = _layers(single) or layers or _layers(rough)
        if len(layers) == len(_layers([*off])):
            return f"every {'weight' if single else 'gradient'} is"
        return listed(layers) and f"{listed(layers)} {'are' if layers[1:] else 'is'}"

    def fail(self, wrong: Sequence[str], text: str) -> None:
        which = ", ".join(wrong[:2]) + " and others" * (len(wrong) > 2)
        if not text or text.endswith((" × 1", " ÷ 1")):  # a factor so near to 1 tells nothing
            far = max(self.off(name) for name in wrong)
            text = f"the gradient of {which} is wrong, by {far:.1e} of its largest entry"
        hint = next((word for word in ("clip", "mask") if word in text), "gradient")
        raise WrongError(text, hint)

    def explained(self, wrong: Sequence[str]) -> str:
        """The mistake that fits some updates, in words; or nothing."""
        grads, counted, n = self.exact.gradients, len(self.clipped.X), len(self.mask)
        if self.clip < inf and (text := wrongly_clipped(self.clipped, grads, self.clip, self.mask)):
            return f"the gradient {text}"
        text, size = mistake(self.update, wrong, self.previous), norm(self.update.applied)
        short = f"{size:.2g}"  # people clip by a number of few digits
        if "right one × 0." in text and abs(size / float(short) - 1) < 2e-5:
            return f"the gradient is clipped to the norm {short}: judge it with --clip {short}"
        if counted == n:
            return text
        applied, grad = flat(self.update.applied, wrong), flat(grads, wrong)
        slips = (
            ("that of all examples, without the mask", flat(self.every.exact().gradients, wrong)),
            (f"divided by {n} examples, though the mask leaves {counted}", grad * counted / n),
        )
        if slip := first_near(applied, slips, distance(applied, grad)[0] / 10):
            return f"the gradient is {slip}"
        return text.replace("differ in size", "differ in how many examples the mask leaves")

    def far_in_float32(self) -> dict[str, float]:
        """How far off float32 in a part of a step may be, by how far NumPy is in all of it."""
        X, weights = self.update.X.astype("float32"), self.update.weights.items()
        make, right = numpy_nets.NETS[self.update.chapter], self.exact.gradients
        net = make({name: values.astype("float32") for name, values in weights}, [(0, len(X))])
        net.backward(numpy_nets.cross_entropy(net.forward(X), self.update.y)[1].astype("float32"))
        far = {k: distance(net.gradients[k], right[k], self.exact.scales[k])[0] for k in right}
        return {name: ROUNDED * max(value, 1e-7) for name, value in far.items()}

    def ends_as_float32(self, name: str) -> bool:
        """Whether a gradient has the digits of float32, also in a mean, or a sum over devices."""
        sizes = np.abs(self.update.applied[name] * len(self.update.X)).ravel()
        ends = sizes[sizes > sizes.max() / 16] / 2.0 ** (np.floor(np.log2(sizes.max())) - 36)
        return len(ends) > 1 and bool(np.median(np.abs(ends - np.rint(ends))) < 0.1)


def _off_movement(name: str, before: Array, after: Array, expected: Array) -> float:
    """How far a running statistic is off, of how far it moves.

    A variance may be that of n - 1, as in PyTorch, which is a little larger in all channels.
    """
    if name.endswith("var"):
        kept = (1 - MOMENTUM) * before.astype("float64")
        ratio = (after - kept) @ (expected - kept) / ((expected - kept) @ (expected - kept))
        expected = kept + (expected - kept) * (ratio if 1 <= ratio < 1.05 else 1)
    return distance(after - before, expected - before)[0]


def _weights(weights: Any, shapes: Shapes) -> Weights:
    values, arrays = call(weights), {}
    values = values if hasattr(values, "keys") else {}
    for name, shape in shapes.items():
        longer = next((key for key in values if str(key).endswith(f".{name}")), "")
        text = f"weights() has no {name}" + f", but {longer}, as a wrapped net has" * bool(longer)
        require(name in values, text, "wrapped" if longer else "names")
        array = arrays[name] = as_array(values[name], name)
        text = f"{name} of weights() has shape {array.shape}, not {shape}"
        require(array.shape == shape, text, "names")
    return arrays
