"""What fits the first wrong numbers of a run: a hint at the mistake, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from common.base.arrays import part
from common.compare.distances import compare, distance, largest
from common.compare.numpy_pass import MOMENTUM
from common.compare.recorded_steps import Recomputed, RecordedStep, movement
from common.compare.runs import RecordedRun
from common.data.dataset import pixels
from common.diagnose.mistakes import ROUNDED, Update, fit, flat, mistake, numbered, wrong_logits
from common.diagnose.tokens import token_hint
from common.parallel.shards import shard_bounds
from common.records.trace import traced_steps

FITS: Final = "fits: "
"""How a hint begins: what fits need not be the cause."""

CLOSE: Final = 100
"""Times the limit that a distance may be from what fits: a fit adds to rounding."""


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
    counts = {"devices": run.devices, "microbatches": config.settings().get("microbatches", 1)}
    several = {what: count for what, count in counts.items() if count > 1}
    what = config.net, *step.minibatch[1:4], step.by_name(moved), carried, run.shards or 1, several
    others = {0, number - 2, number, *(k * (number - 1) for k in several.values())} - {-1}
    rates = {t + 1: config.learning_rate(t) / step.lr for t in others if config.lr_decay != "none"}
    return Update(*what, config.batch_size, CLOSE * run.limits["update"], step.momentum, rates)


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
