"""Judges the order of a pipeline's passes, and trains LeNet in it."""

from operator import index
from typing import Any

import numpy as np

from common.base.errors import RequestError
from common.compare.distances import distance
from common.compare.limits import EXACT
from common.compare.numpy_nets import Back, LeNet, cross_entropy, step, through
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.nets import examples, random_weights
from common.judge.readers import as_list, call
from common.parallel.pipelines import Order, Pass, bubble, most_live, simulate
from common.parallel.shards import shard_bounds


def judge_pipeline(candidate: Any, setting: Setting) -> Cases:
    """Judges `candidate(stages, microbatches) -> passes of each stage`."""
    for p in range(1, 7):
        for m in range(1, 9):
            yield f"{p} stage{'s' * (p > 1)} and {m} microbatch{'es' * (m > 1)}"
            lists = as_list(call(candidate, p, m), "what it returns", p)
            order = [_judge_stage(stage, passes, m) for stage, passes in enumerate(lists)]
            try:
                events = simulate(order)
            except ValueError as error:
                raise WrongError(str(error), "waiting") from None
            if p <= 4 and m == 5:
                _judge_training(order, m)
    waiting, least = bubble(events, p), (p - 1) / (m + p - 1)
    text = f"devices wait {waiting:.0%} of the time (at least {least:.0%}) and keep"
    right = f"no stage waits for ever, over 1 to {p} stages and 1 to {m} microbatches, LeNet trains"
    return f"{right}; with the most, {text} {max(map(most_live, order))} microbatches"


def _pass(item: Any, stage: int) -> Pass:
    if isinstance(item, Pass):
        return item
    try:
        direction, microbatch = item
        return Pass(stage, index(microbatch), {"f": True, "b": False}[direction[0].lower()])
    except (TypeError, ValueError, LookupError, AttributeError):
        due = '("forward", i) or ("backward", i) is due'
        raise RequestError(f"stage {stage} has {item!r}, where {due}") from None


def _judge_stage(stage: int, items: Any, m: int) -> list[Pass]:
    """A stage's passes: each microbatch goes forward once, and then backward once."""
    passes = [_pass(item, stage) for item in as_list(items, f"stage {stage}")]
    every = [Pass(stage, i, forward) for i in range(m) for forward in (True, False)]
    for entry in [*every, *passes]:
        text = f"{entry.name()} {passes.count(entry)} times, not {int(entry in every)}"
        require(passes.count(entry) == (entry in every), f"stage {stage} has {text}", "passes")
    for forward, backward in zip(every[::2], every[1::2], strict=True):
        text = f"stage {stage} has {backward.name()} before {forward.name()}"
        require(passes.index(forward) < passes.index(backward), text, "before")
    return passes


def _judge_training(order: Order, m: int) -> None:
    weights, (X, y) = random_weights("lenet", "float64"), examples(11, "float64")
    layers = LeNet(weights).layers()
    bounds, cuts = shard_bounds(len(X), m), shard_bounds(len(layers), len(order))
    nets, values = [LeNet(weights) for _ in bounds], [X[a:b] for a, b in bounds]
    tapes: dict[tuple[int, int], list[Back]] = {}
    for (stage, i, forward), _, _ in simulate(order):
        if not forward:
            values[i] = through(tapes[stage, i], values[i])
            continue
        tapes[stage, i] = nets[i].tape = []
        for name in layers[slice(*cuts[stage])]:
            values[i] = nets[i].layer(name, values[i])
        if stage == len(order) - 1:
            a, b = bounds[i]
            values[i] = cross_entropy(values[i], y[a:b])[1] * (b - a) / len(X)
    for name, expected in step("scratch", X, y, weights, [(0, len(X))]).gradients.items():
        grad = np.sum([net.gradients[name] for net in nets], axis=0)
        text = f"the gradient of {name} is not that of one device"
        require(distance(grad, expected)[0] < EXACT, text, "gradient")
