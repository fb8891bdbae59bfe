"""Judges the order of a pipeline's passes."""

from operator import index
from typing import Any

from common.base.errors import RequestError
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.readers import as_list, call
from common.parallel.pipelines import Pass, bubble, most_live, simulate


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
    waiting, least = bubble(events, p), (p - 1) / (m + p - 1)
    text = f"devices wait {waiting:.0%} of the time (at least {least:.0%}) and keep"
    right = f"no stage waits for ever, over 1 to {p} stages and 1 to {m} microbatches"
    return f"{right}; with the most, {text} {max(map(most_live, order))} microbatches"


def _pass(item: Any, stage: int) -> Pass:
    if isinstance(item, Pass):
        return item
    try:
        direction, microbatch = item
        kind = {"f": "forward", "b": "backward"}[direction[0].lower()]
        return Pass(stage, index(microbatch), kind)
    except (TypeError, ValueError, LookupError, AttributeError):
        due = '("forward", i) or ("backward", i) is due'
        raise RequestError(f"stage {stage} has {item!r}, where {due}") from None


def _judge_stage(stage: int, items: Any, m: int) -> list[Pass]:
    """A stage's passes: each microbatch goes forward once, and then backward once."""
    passes = [_pass(item, stage) for item in as_list(items, f"stage {stage}")]
    every = [Pass(stage, i, kind) for i in range(m) for kind in ("forward", "backward")]
    for entry in [*every, *passes]:
        text = f"{entry.name()} {passes.count(entry)} times, not {int(entry in every)}"
        require(passes.count(entry) == (entry in every), f"stage {stage} has {text}", "passes")
    for forward, backward in zip(every[::2], every[1::2], strict=True):
        text = f"stage {stage} has {backward.name()} before {forward.name()}"
        require(passes.index(forward) < passes.index(backward), text, "before")
    return passes
