"""What fits the first wrong numbers of a run: a hint at the mistake, in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from common.base.arrays import Array, part
from common.chapters.strategies import StrategiesOptions
from common.compare import numpy_nets
from common.compare.distances import compare, distance, first_near, largest
from common.compare.numpy_gpt import MoE
from common.compare.numpy_pass import MOMENTUM
from common.compare.recorded_steps import Recomputed, RecordedStep, movement, weights_after
from common.compare.runs import RecordedRun
from common.data.dataset import pixels
from common.diagnose.mistakes import ROUNDED, Update, fit, flat, mistake, numbered, wrong_logits
from common.parallel.shards import shard_bounds
from common.records.trace import traced_steps

FITS: Final = "fits: "
"""How a hint begins: what fits need not be the cause."""

CLOSE: Final = 100
"""Times the limit that a distance may be from what fits: a fit adds to rounding."""

NEAR: Final = 1e-6
"""How near to what a mistake computes a gradient over tokens is: all differ by far more."""


def hint(run: RecordedRun, recomputed: Recomputed) -> str:
    """A line on what fits a run where it is wrong first; empty if nothing does."""
    limits, ours = run.limits, run.arrays["logits/before"]
    if run.record.config.net in ("gpt", "moe"):
        return (text := token_hint(run, recomputed)) and f"{FITS}{text}"
    if distance(ours, recomputed.expected["logits/before"])[0] > limits["forward"]:
        X = pixels(run.arrays["probe/images"], run.record.config.dtype)
        probe = run.record.chapter, part(run.arrays, "trace/weights/0/"), X, ours
        if slip := wrong_logits(*probe, CLOSE * limits["forward"], run.devices):
            return f"{FITS}the first logits are those {slip}"
    for number in traced_steps(run.record.config):
        off = {
            kind: [x.array for x in every if x.step == number and x.far > limits[kind]]
            for kind, every in recomputed.steps.items()
        }
        if any(off.values()):
            text = step_hint(run, number, off, recomputed)
            return text and f"{FITS}in step {number}, {text}"
    return ""


def step_hint(
    run: RecordedRun, number: int, off: Mapping[str, Sequence[str]], recomputed: Recomputed
) -> str:
    """What fits a step, of which these arrays are off, by quantity."""
    step, update, text = RecordedStep(run, number), update_of(run, number), ""
    velocity = [*step.velocity_after.values()]
    if off.get("velocity") and step.dtype == "float64":
        most = max(x.far for x in recomputed.steps["velocity"] if x.step == number)
        if most < ROUNDED / 1000 and all((v == v.astype("float32")).all() for v in velocity):
            return "the momentum is rounded to float32"
    gradients = compare(run.arrays, recomputed.expected, "gradients/", recomputed.scales)
    first = number == 1 and all(x.far <= run.limits["gradient"] for x in gradients)
    if first or (velocity and not off.get("velocity")):
        update = replace(update, kind="update")
    if wrong := off.get("update"):
        kept = number - 1 in traced_steps(run.record.config)
        # Before batch normalization, a bias has the gradient 0: what fits others fits it, too.
        exact, scales = step.right.gradients, step.right.scales
        zero = [x for x in exact if largest(exact[x]) < update.rounding * scales[x]]
        names = [name for name in exact if name in {*wrong, *zero}]
        far = {x.step or 0 for x in recomputed.steps["update"] if x.far > run.limits["update"]}
        later = [update_of(run, n) for n in sorted(far - {*range(number + 1)})[:2]]
        text = mistake(update, names, update_of(run, number - 1) if kept else None, later)
        if number > 1:  # the gradient is known of the first step only: it may be the rate
            text = text.replace("the gradient is the right one", "the update is the right one")
    if off["loss"] and not text:
        text = loss_hint(update, step, CLOSE * run.limits["loss"])
    wrong = [name for name in off.get("statistics", ()) if name in step.before]  # the first's
    if (names := wrong) and not text:
        text = statistics_hint(update, step, names)
    return text


def update_of(run: RecordedRun, number: int) -> Update:
    step, config = RecordedStep(run, number), run.record.config
    carried = {name: step.momentum * v for name, v in step.velocity_before.items()}
    moved, _ = movement(step.vector(step.before), step.vector(step.after), step.lr)
    moved -= step.vector(carried) if carried else 0
    several = counts_of(run)
    what = config.net, *step.minibatch[1:4], step.by_name(moved), carried, run.shards or 1, several
    others = {0, number - 2, number, *(k * (number - 1) for k in several.values())} - {-1}
    rates = {t + 1: config.learning_rate(t) / step.lr for t in others if config.lr_decay != "none"}
    return Update(*what, config.batch_size, CLOSE * run.limits["update"], step.momentum, rates)


def counts_of(run: RecordedRun) -> dict[str, int]:
    """The numbers by which people divide: of devices and microbatches, if there are several."""
    settings = run.record.config.settings()
    counts = {what: int(settings.get(what, 1)) for what in ("devices", "microbatches")}
    return {what: count for what, count in counts.items() if count > 1}


def loss_hint(update: Update, step: RecordedStep, limit: float) -> str:
    fits = {}
    for k in update.counts.values():
        who, n = f"{k} {numbered(k, update.counts)}", shard_bounds(len(update.X), k)[0][1]
        first = replace(update, X=update.X[:n], y=update.y[:n])
        fits[f"that of the first of {who} only"] = first.exact().loss
        fits[f"that of a softmax over the logits of {who}"] = step.right.loss + np.log(k)
    near = (x for x in fits if abs(step.loss - fits[x]) <= limit * step.right.loss_scale)
    return (text := next(near, "")) and f"the loss is {text}"


def statistics_hint(update: Update, step: RecordedStep, names: Sequence[str]) -> str:
    old = flat(step.before, names)
    moved = flat(step.after, names) - old
    for k in dict.fromkeys([update.shards, 1, *update.counts.values()]):
        due = flat(update.exact(k).statistics, names) - old
        factors = fit(moved, [due], update.rounding)
        if factors is not None and abs(factors[0] - 1) > ROUNDED:
            share = f"{MOMENTUM * factors[0]:.3g}, not {MOMENTUM}"
            return f"the momentum of running statistics is {share}"
        if factors is not None and k != update.shards:  # else they are right, but for a little
            return f"running statistics are those of {f'one of {k}' if k > 1 else 'all'} devices"
        if unbiased(update, step, names, k):
            return "running variances are those of n - 1 pixels, not of n"
    return ""


def unbiased(update: Update, step: RecordedStep, names: Sequence[str], k: int) -> bool:
    """Whether variances are larger by n / (n - 1): n pixels of the examples of one of k devices."""
    examples, right = shard_bounds(len(update.X), k)[0][1], update.exact(k).statistics
    for name in names:
        kept = (1 - MOMENTUM) * step.before[name]
        factors = fit(step.after[name] - kept, [right[name] - kept], update.rounding)
        n = factors[0] / (factors[0] - 1) if factors is not None and factors[0] > 1 else 0.0
        side = np.sqrt(n / examples)  # images are squares
        if not 1 <= side < 29 or abs(side % 1 - 0.5) < 0.4:
            return False
    return True


def token_hint(run: RecordedRun, recomputed: Recomputed) -> str:
    """What fits a transformer: in its logits, in its loss over tokens, or in clipping."""
    counts = counts_of(run)
    logits = run.arrays["logits/before"]
    if distance(logits, recomputed.expected["logits/before"])[0] > NEAR:
        text = first_near(logits, wrong_token_logits(run, counts), NEAR)
        return text and f"the first logits {text}"
    step = RecordedStep(run, traced_steps(run.record.config)[0])
    ours = step.vector(part(run.arrays, "gradients/"))
    if distance(ours, step.exact)[0] > NEAR:
        text = first_near(ours, mistakes(step, counts, tokens_of(run)), NEAR)
        return text and f"in step 1, the gradient {text}"
    wrong = [x.step for x in recomputed.steps["momentum"] if x.far > run.limits["momentum"]]
    for number in sorted(number for number in {*wrong} if number):
        shares = clipped_parts(RecordedStep(run, number))
        if len(shares) > 1:
            told = " or ".join(f"{share:.3g}" for share in sorted(shares))
            what = f"in step {number}, the gradient is clipped by the norm of a part"
            return f"{what}: tensors are scaled {told} times"
    return ""


def wrong_token_logits(run: RecordedRun, counts: Mapping[str, int]) -> Iterator[tuple[str, Array]]:
    """What the logits of texts may be by mistake, in words."""
    weights, probe = weights_after(run, 0), run.arrays["probe/images"]
    for what, k in counts.items():
        ends = (".proj.bias", ".down.bias", ".position")
        scaled = {name: k * values for name, values in weights.items() if name.endswith(ends)}
        logits = numpy_nets.logits(run.net, probe, {**weights, **scaled})
        yield f"have biases and positions {k} times, the number of {what}", logits
    if tokens := tokens_of(run):
        rows = np.empty_like(weights["embed.position"])
        for here in tokens:
            rows[here] = weights["embed.position"][: len(here)]
        logits = numpy_nets.logits("gpt", probe, {**weights, "embed.position": rows})
        yield "count the positions of each device's tokens from 0", logits


def tokens_of(run: RecordedRun) -> list[list[int]]:
    """The places of each device's tokens, where devices share a sequence."""
    options = run.record.config.options
    if not isinstance(options, StrategiesOptions):
        return []
    plan = options.plan(run.devices)
    return [[*plan.tokens_of(i)] for i in range(plan.devices) if plan.tokens_of(i)]


def mistakes(
    step: RecordedStep, counts: Mapping[str, int], tokens: list[list[int]]
) -> Iterator[tuple[str, Array]]:
    """What a step may take for the gradient of the loss, in words and as a vector (n,)."""
    make, X, y, weights, shards = step.minibatch
    net = numpy_nets.net_of(make)(numpy_nets.doubled(weights), shards)
    logits = net.forward(X)
    _, right = numpy_nets.cross_entropy(logits, y)

    def gradient(d: Array) -> Array:
        net.gradients = {}
        net.backward(d)
        return step.vector(net.gradients)

    if isinstance(net, MoE):
        yield from mistakes_of_experts(step, net, lambda: gradient(right), counts)
    counted = (y >= 0)[..., None] / (y >= 0).sum()
    label = (np.arange(logits.shape[-1]) == y[..., None]) * counted
    yield "lacks that of the sum of exponentials", gradient(-label)
    yield "lacks that of the label's logit", gradient(right + label)
    padded = numpy_nets.cross_entropy(logits, np.where(y < 0, logits.shape[-1] - 1, y))[1]
    yield "counts tokens that have no label: padding", gradient(padded)
    if tokens:
        lost = right.copy()
        lost[:, [here[-1] for here in tokens]] = 0
        yield (
            "lacks the label of each device's last token: labels are shifted there",
            gradient(lost),
        )
    for what, k in counts.items():
        yield f"is {k} times as large: {k}, the number of {what}", gradient(k * right)
        rows = [slice(*bounds) for bounds in shard_bounds(len(X), k)]
        means = np.concatenate([numpy_nets.cross_entropy(logits[x], y[x])[1] / k for x in rows])
        yield f"is the mean of the means over the tokens of {k} {what}", gradient(means)
        of_k = (right + label) / k - label
        yield f"is that of a softmax over the logits of {k} {what}", gradient(of_k)
        local = right + label
        for words in (slice(*bounds) for bounds in shard_bounds(logits.shape[-1], k)):
            local[..., words] /= local[..., words].sum(axis=-1, keepdims=True) + 1e-300
        yield (
            f"is that of a softmax over the words of one of {k} {what}",
            gradient(local * counted - label),
        )


def mistakes_of_experts(
    step: RecordedStep, net: MoE, gradient: Callable[[], Array], counts: Mapping[str, int]
) -> Iterator[tuple[str, Array]]:
    """The same of a mixture of experts; `gradient` backpropagates through the net."""
    right = gradient()
    exact = step.by_name(right)
    experts = [name for name in exact if ".moe.up." in name or ".moe.down." in name]
    for what, k in counts.items():
        scaled = {name: k * exact[name] for name in experts}
        yield f"has that of experts {k} times, the number of {what}", step.vector(exact | scaled)
    net.balance, balance = 0.0, net.balance
    auxiliary = right - gradient()
    net.balance = balance
    for times in (0, 2):
        wrong = right + (times - 1) * auxiliary
        yield f"has that of the auxiliary loss {times} times", wrong


def clipped_parts(step: RecordedStep) -> list[float]:
    """By how much the gradient of each tensor is scaled, each factor once; none if it is not."""
    before, after = step.moments
    factors: list[float] = []
    for name, exact in step.right.gradients.items():
        old = before["momentum"].get(name, np.zeros_like(exact))
        shown = (after["momentum"][name] - 0.9 * old) / 0.1
        factor = float((shown * exact).sum() / (exact**2).sum())
        if distance(shown, factor * exact)[0] > NEAR:
            return []
        if not any(abs(factor - other) < NEAR for other in factors):
            factors.append(factor)
    return factors
