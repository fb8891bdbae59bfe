"""Judges sums over devices, and schedules: of their messages, and of a pipeline's passes."""

from fractions import Fraction
from itertools import combinations
from operator import index
from typing import Any

import numpy as np

from common.base.arrays import Array
from common.base.errors import RequestError
from common.diagnose.mistakes import BASE, Shares, contributions, shares_in
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.readers import as_array, as_list, call
from common.parallel.pipelines import Pass, bubble, most_live, simulate
from common.parallel.schedules import Schedule, Transfer, execute
from common.terminal.tables import listed


def judge_allreduce(candidate: Any, setting: Setting) -> Cases:
    """Judges `candidate(data) -> list` for every number of devices."""
    for dtype in [setting.dtype] if setting.dtype else ["float64", "float32"]:
        for k in range(1, len(setting.devices) + 1):
            for shape in ((1,), (7,), (1000,), (3, 5), (0,)):
                size = " x ".join(map(str, shape))
                yield f"{k} device{'s' * (k > 1)}, size {size}, {dtype}"
                try:
                    _judge_sums(candidate, setting, _rows(k, shape, dtype))
                except WrongError as wrong:
                    even, uneven = (
                        _is_right(candidate, setting, _rows(k, (n,), dtype))
                        for n in (4 * k, 4 * k + 1)
                    )
                    if not even or uneven or np.prod(shape) % k == 0:
                        raise
                    text = f"{wrong.args[0]}; of {4 * k} entries, which {k} divides, it is right"
                    raise WrongError(text, "remainder") from None
    return f"every device gets the sum, with the same bits, over 1 to {k} devices"


def _rows(k: int, shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.RandomState(k).standard_normal((k, *shape)).astype(dtype)


def _is_right(candidate: Any, setting: Setting, rows: Array) -> bool:
    try:
        _judge_sums(candidate, setting, rows)
    except (WrongError, RequestError):
        return False
    return True


def _judge_sums(candidate: Any, setting: Setting, rows: Array) -> None:
    k, wide = len(rows), rows.astype("float64")
    inputs, outputs = _reduced(candidate, setting, rows)
    arrays = [as_array(output, "an output") for output in outputs]
    # Each addition rounds once: some room is left for other ways to add.
    exact, bound = wide.sum(axis=0), 4 * k * np.finfo(rows.dtype).eps * np.abs(wide).sum(axis=0)
    for i, array in enumerate(arrays):
        text = f"device {i} gets an array of shape {array.shape}, not {exact.shape}"
        require(array.shape == exact.shape, text, "places")
        require(array.dtype == rows.dtype, f"device {i} gets a sum of {array.dtype}", "dtype")
    far = np.max([np.abs(array - exact) for array in arrays], axis=0)
    if not (far <= bound).all():
        _describe(candidate, setting, rows)
        for dtype, eps in {"float32": 2**-23, "float16": 2**-10, "bfloat16": 2**-7}.items():
            rounded = (far <= k * eps * np.abs(wide).sum(axis=0)).all()
            require(not rounded, f"the sums are only as exact as {dtype}", "rounded")
        raise WrongError("entries of the sum are in wrong places, or lack digits", "places")
    for i, array in enumerate(arrays):
        text = f"the sums of devices 0 and {i} differ in their last bits"
        require(array.tobytes() == arrays[0].tobytes(), text, "bits")
    for i, j in combinations(range(k), 2):
        text = f"devices {i} and {j} share the memory of one array"
        a, b = outputs[i], outputs[j]
        require(a is not b and (setting.immutable or not _share(a, b)), text, "memory")
    after = [as_array(values, "an input") for values in inputs]
    changed = [i for i in range(k) if not np.array_equal(after[i], rows[i])]
    text = f"of the caller's arrays, only those of devices {listed(changed)} are overwritten"
    require(len(changed) in (0, k), text, "inputs")


def _reduced(candidate: Any, setting: Setting, rows: Array) -> tuple[list[Any], list[Any]]:
    inputs = [setting.hand(row, i) for i, row in enumerate(rows)]
    data = list(inputs)
    result = call(candidate, data)
    if result is None:
        return inputs, data if setting.immutable else inputs
    outputs = as_list(result, "what it returns")
    text = f"{len(outputs)} of {len(rows)} devices get an array"
    require(len(outputs) == len(rows), text, "count")
    return inputs, outputs


def _describe(candidate: Any, setting: Setting, rows: Array) -> None:
    known = np.stack([np.full(row.shape, float(BASE**i)) for i, row in enumerate(rows)])
    inputs, outputs = _reduced(candidate, setting, known)
    sums = [as_array(output, "an output").ravel() for output in outputs]
    text = contributions([[shares_in(x, len(rows)) for x in array] for array in sums], "entry")
    hint = "mean" if "/" in text else "rebound" if outputs is inputs else "missing"
    require(not text, text, hint)


def _share(a: Any, b: Any) -> bool:
    """Whether two tensors share memory, as far as NumPy sees it."""
    if hasattr(a, "asnumpy"):  # MXNet shows it none
        return False
    a, b = (np.asarray(x.detach().cpu() if hasattr(x, "detach") else x) for x in (a, b))
    return np.shares_memory(a, b)


def judge_schedule(candidate: Any, setting: Setting) -> Cases:
    """Judges `candidate(k) -> rounds` for every number of devices."""
    for k in range(1, len(setting.devices) + 1):
        yield f"{k} device{'s' * (k > 1)}"
        result = call(candidate, k)
        ours = isinstance(result, Schedule) and result.devices == k
        schedule = result if ours else _read(result, k)
        shares = _shares(schedule)
        require(not (text := contributions(shares, "chunk")), text, "missing")
        turned = tuple(transfers[::-1] for transfers in schedule.rounds)
        same = shares == _shares(Schedule(k, schedule.chunks, turned))
        require(same, "a round stores a chunk that it adds to, or stores again", "order")
    busiest = max(map(max, schedule.traffic(schedule.chunks))) / schedule.chunks
    text = f"with {k}, rounds: {len(schedule.rounds)}, chunks: {schedule.chunks}, and the busiest"
    load = f"sends or receives {busiest:.4g} arrays (least: {2 * (k - 1) / k:.4g})"
    return f"every device gets the sum, over 1 to {k} devices; {text} {load}"


def _read(rounds: Any, k: int) -> Schedule:
    messages = [as_list(items, "a round") for items in as_list(rounds, "what it returns")]
    every = [tuple(_transfer(item, k) for item in items) for items in messages]
    chunks = max((t.chunks.stop for transfers in every for t in transfers), default=1)
    return Schedule(k, chunks, tuple(every))


def _transfer(item: Any, k: int) -> Transfer:
    try:
        *places, adds = item
        source, target, chunk = map(index, places)
    except (TypeError, ValueError):
        due = "(source, target, chunk, adds) is due"
        raise RequestError(f"a round has {item!r}, where {due}") from None
    right = 0 <= source < k and 0 <= target < k and 0 <= chunk < 10_000
    require(right, f"a round has {item!r}, where a number is out of range", "places")
    return Transfer(source, target, range(chunk, chunk + 1), bool(adds))


def _shares(schedule: Schedule) -> list[list[Shares]]:
    units = np.eye(schedule.devices, dtype=int).astype(object)
    held = [[row] * schedule.chunks for row in units]
    execute(schedule, held, lambda chunk, _: chunk)
    return [[tuple(map(Fraction, chunk)) for chunk in chunks] for chunks in held]


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
