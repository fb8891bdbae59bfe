"""Which mistake fits a wrong step of the transformer: in its loss over tokens, or in clipping."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from common.base.arrays import Array, part
from common.chapters.strategies import StrategiesOptions
from common.compare import numpy_nets
from common.compare.distances import distance
from common.compare.numpy_gpt import MoE
from common.compare.numpy_nets import cross_entropy, doubled, net_of
from common.compare.recorded_steps import Recomputed, RecordedStep, weights_after
from common.compare.runs import RecordedRun
from common.parallel.shards import shard_bounds
from common.records.trace import traced_steps

NEAR = 1e-6
"""How near to what a mistake computes a gradient is: all differ by far more."""


def token_hint(run: RecordedRun, recomputed: Recomputed) -> str:
    """The mistake that fits a run where it is wrong first, in words; nothing if none does."""
    several = {"devices": run.devices, "microbatches": run.record.config.settings()["microbatches"]}
    counts = {what: int(count) for what, count in several.items() if count > 1}
    logits = run.arrays["logits/before"]
    if distance(logits, recomputed.expected["logits/before"])[0] > NEAR:
        return logits_hint(run, logits, counts)
    step = RecordedStep(run, traced_steps(run.record.config)[0])
    ours = step.vector(part(run.arrays, "gradients/"))
    if distance(ours, step.exact)[0] > NEAR:
        fits = (
            x
            for x, gradient in mistakes(step, counts, tokens_of(run))
            if distance(ours, gradient)[0] < NEAR
        )
        return (text := next(fits, "")) and f"in step 1, the gradient {text}"
    wrong = [x.step for x in recomputed.steps["momentum"] if x.far > run.limits["momentum"]]
    for number in sorted(number for number in {*wrong} if number):
        shares = clipped_parts(RecordedStep(run, number))
        if len(shares) > 1:
            told = " or ".join(f"{share:.3g}" for share in sorted(shares))
            what = f"in step {number}, the gradient is clipped by the norm of a part"
            return f"{what}: tensors are scaled {told} times"
    return ""


def logits_hint(run: RecordedRun, logits: Array, counts: Mapping[str, int]) -> str:
    weights, probe = weights_after(run, 0), run.arrays["probe/images"]
    for what, k in counts.items():
        ends = (".proj.bias", ".down.bias", ".position")
        scaled = {name: k * values for name, values in weights.items() if name.endswith(ends)}
        fits = numpy_nets.logits(run.net, probe, {**weights, **scaled})
        if distance(logits, fits)[0] < NEAR:
            return f"the first logits have biases and positions {k} times, the number of {what}"
    if tokens := tokens_of(run):
        rows = np.empty_like(weights["embed.position"])
        for here in tokens:
            rows[here] = weights["embed.position"][: len(here)]
        weights = {**weights, "embed.position": rows}
        if distance(logits, numpy_nets.logits("gpt", probe, weights))[0] < NEAR:
            return "the first logits count the positions of each device's tokens from 0"
    return ""


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
    net = net_of(make)(doubled(weights), shards)
    logits = net.forward(X)
    _, right = cross_entropy(logits, y)

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
    padded = cross_entropy(logits, np.where(y < 0, logits.shape[-1] - 1, y))[1]
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
        means = np.concatenate([cross_entropy(logits[x], y[x])[1] / k for x in rows])
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
