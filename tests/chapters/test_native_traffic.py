"""The traffic of a native strategy's step, counted by each framework's tools."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from scratch_steps import batches, start
from workers import Worker

from common.base.arrays import Array, Weights
from common.base.machine import native_errors_held_back
from common.chapters.strategies import StrategiesOptions
from common.parallel.strategies import OF_ANY_NET

PAGE = Path(__file__).parents[2] / "docs/splitting.md"

Sizes = Counter[str]
"""By kind of collective, the bytes of the whole tensors that a step sends.

Messages ("send") are those of all devices.
"""


GLOO: Final = {
    "gloo:all_reduce": "all-reduce",
    "gloo:all_gather": "all-gather",
    "gloo:_all_gather_base": "all-gather",
    "gloo:broadcast": "broadcast",
    "gloo:send": "send",
}
"""PyTorch's names of Gloo's collectives; it scatters by an all-reduce."""


def profiled(trainer: Any, X: Array, y: Array) -> Sizes:
    """PyTorch's profiler sees every collective of this process, with its shapes."""
    torch: Any = import_module("torch")
    dist, profiler = torch.distributed, torch.profiler
    # Before the first step, stages exchange shapes; before the second, DDP orders gradients.
    for _ in range(2):
        trainer.train_batch(X, y, 0.0)
    watched = profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True)
    with native_errors_held_back(), watched as seen:  # it says when it begins and ends
        trainer.train_batch(X, y, 0.0)
    sizes = Sizes()
    for event in seen.events():
        if event.name in GLOO:
            kind = GLOO[event.name]
            whole = dist.get_world_size() if kind == "all-gather" else 1
            sizes[kind] += X.itemsize * whole * sum(map(prod, event.input_shapes))
    sent = torch.tensor(sizes["send"])
    dist.all_reduce(sent)
    sizes["send"] = int(sent)
    return sizes


def in_functions(trainer: Any, X: Array, y: Array) -> Sizes:
    """The functions of DTensor; each microbatch calls those of a gradient.

    On CPUs it gathers by a sum, too, of tensors that are zeros except for a device's own part.
    """
    tf: Any = import_module("tensorflow")
    context: Any = import_module("tensorflow.python.eager.context").context()
    copy = type(trainer)(trainer.export(), trainer.devices, trainer.options)
    before = set(context.list_function_names())
    _, grads = copy.loss_and_grads(X, y)
    of_gradient = set(context.list_function_names()) - before
    copy.update(grads, 0.1, 0.9)
    sizes = Sizes()
    for name in set(context.list_function_names()) - before:
        for node in context.get_function_def(name).node_def:
            if node.op.startswith("Collective") and "Communicator" not in node.op:
                assert node.op == "CollectiveReduceV2"
                (shape,) = node.attr["_output_shapes"].list.shape
                size = prod(axis.size for axis in shape.dim)
                times = trainer.plan.microbatches if name in of_gradient else 1
                itemsize = tf.as_dtype(node.attr["T"].type).size
                sizes["all-reduce"] += times * size * itemsize
    return sizes


KIND = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
COLLECTIVE = re.compile(rf" = (\([^()]*\)|\S+) ({KIND})\(")
TENSOR = re.compile(r"\b(pred|[a-z]+(\d+))\[([\d,]*)\]")
ALONE = re.compile(r"replica_groups=\{(\{\d+\},?)+\}")  # each device with itself
PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)+)\}")
COMPUTATION = re.compile(r"(?:ENTRY )?%(\S+) \(.*\{$")
LOOP = re.compile(r'body=%(\S+?),.*known_trip_count":\{"n":"(\d+)"')


def compiled(trainer: Any, X: Array, y: Array) -> Sizes:
    """JAX's compiled program names its collectives."""
    arguments = trainer.params, trainer.momenta, trainer._batch(X, y), 0.1, 0.9
    text = trainer._step.lower(*arguments).compile().as_text()
    assert "-start(" not in text  # no CPU has asynchronous collectives
    loops, times, sizes = dict(LOOP.findall(text)), 1, Sizes()
    for line in text.splitlines():
        if computation := COMPUTATION.match(line):
            times = int(loops.get(computation[1], 1))
        match = COLLECTIVE.search(line)
        if match and not ALONE.search(line):
            # Each pair of a device and its neighbour is a message of its own.
            pairs = PAIRS.search(line)
            messages = pairs[1].count(",{") + 1 if pairs else 1
            kind = "send" if pairs else match[2]
            sizes[kind] += times * messages * bytes_of(match[1])
    return sizes


def bytes_of(shapes: str) -> int:
    """The bytes of tensors, by their types and shapes in a program's text."""
    return sum(
        prod(map(int, filter(None, shape.split(",")))) * (int(bits or 8) // 8)
        for _, bits, shape in TENSOR.findall(shapes)
    )


def count_traffic(
    framework: str, chapter: Any, devices: Sequence[Any], options: StrategiesOptions
) -> Weights:
    """The elements that a step on 12 images sends, by kind of collective."""
    trainer = chapter.trainer(start("float64", options.shapes()), devices, options)
    count = {"pytorch": profiled, "tensorflow": in_functions, "jax": compiled}[framework]
    sizes = count(trainer, *batches(1, 12, "float64")[0])
    return {kind: np.array(float(size // 8)) for kind, size in sizes.items() if size}


@pytest.mark.only("pytorch", "jax", "tensorflow")
def test_a_step_sends_what_the_page_says(framework: str, tmp_path: Path) -> None:
    pipeline = StrategiesOptions("pipeline", native=True, schedule="gpipe", microbatches=4)
    options = {x: StrategiesOptions(x, native=True, microbatches=1) for x in OF_ANY_NET}
    options |= {"pipeline": pipeline}
    native = {name: x for name, x in options.items() if not x.no_native(framework)}
    cases = {name: (partial(count_traffic, framework), x) for name, x in native.items()}
    counted = Worker(framework, "strategies", 2, cases, tmp_path).run()
    _, page = PAGE.read_text(encoding="utf-8").split("Tests count the native traffic")
    headings, _, *lines = [
        line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")
    ]
    rows = {cells[0].strip("`"): cells for cells in lines[: len(OF_ANY_NET)]}
    column = [heading.lower() for heading in headings].index(framework)
    for name, elements in counted.items():
        sizes = dict(entry.rsplit(" ", 1) for entry in rows[name][column].split(", "))
        assert elements == {kind: float(size.replace(",", "")) for kind, size in sizes.items()}
    assert {name for name, cells in rows.items() if cells[column] == "none"} == (
        set(OF_ANY_NET) - counted.keys()
    )
