"""Which operations a training step spends its time on, by the framework's own profiler.

python -m bench.profile jax scratch
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from bench.ours import Ours
from bench.plan import WORKLOADS, options
from common.backends.devices import DeviceRequest, Process
from common.backends.frameworks import FRAMEWORKS
from common.backends.loading import import_backend
from common.base.machine import cores
from common.chapters.chapters import SPECS
from common.data.dataset import load
from common.terminal.command import Parser, status
from common.terminal.tables import markdown
from common.terminal.values import REPEATS, count

Work = Callable[[], None]
Spent = Counter[str]
"""Seconds of each operation. Where operations run side by side, they add up to more than passed."""

STEPS: Final = {"scratch": 10, "concise": 2, "strategies": 10}
"""How many steps are profiled."""


def pytorch(work: Work) -> Spent:
    """By PyTorch's profiler: an operation's own time, without those that it calls."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        work()
    return Counter({each.key: each.self_cpu_time_total / 1e6 for each in found.key_averages()})


def tensorflow(work: Work) -> Spent:
    """By TensorFlow's profiler: nodes of the graph, whose events are called "path/name:type"."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            work()
        space = XSpace.FromString(trace(folder).read_bytes())
    spent: Spent = Counter()
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            name, colon, kind = plane.event_metadata[event.metadata_id].name.partition(":")
            if colon and kind.isidentifier():
                spent[name.rpartition("/")[2]] += event.duration_ps / 1e12
    return spent


def jax(work: Work) -> Spent:
    """By JAX's profiler: instructions of XLA, without their numbers."""
    from jax import profiler

    with tempfile.TemporaryDirectory() as folder:
        with profiler.trace(folder):
            work()
        planes = profiler.ProfileData.from_file(str(trace(folder))).planes
        events = [event for plane in planes for line in plane.lines for event in line.events]
    spent: Spent = Counter()
    for event in events:
        name, _, number = event.name.partition(".")
        # What is not an instruction is a function of Python or C++.
        if name.isidentifier() and (number.isdecimal() or "fusion" in name):
            spent[name] += event.duration_ns / 1e9
    return spent


def mxnet(work: Work) -> Spent:
    """By MXNet's profiler: operators."""
    from mxnet import profiler

    with tempfile.TemporaryDirectory() as folder:
        profiler.set_config(
            profile_imperative=True, aggregate_stats=True, filename=f"{folder}/profile.json"
        )
        profiler.set_state("run")
        work()
        profiler.set_state("stop")
        found = json.loads(profiler.dumps(format="json"))["Time"]
    operators = found["operator"]
    return Counter({name: each["Total"] / 1e3 for name, each in operators.items()})


PROFILERS: Final = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax, "mxnet": mxnet}


def trace(folder: str) -> Path:
    """The file that a profiler has left in a folder."""
    return next(Path(folder).glob("**/*.xplane.pb"))


def table(spent: Spent, steps: int, rows: int) -> list[str]:
    """The operations that take longest, as a Markdown table."""
    total = sum(spent.values())
    found = [
        (name, f"{1e3 * seconds / steps:.1f}", f"{100 * seconds / total:.0f} %")
        for name, seconds in spent.most_common(rows)
    ]
    return markdown(["operation", "ms/step", "share"], found)


def main(argv: Sequence[str] | None = None) -> None:
    """Profiles a chapter with the benchmark's setting, on one device with all cores."""
    made = Parser(
        prog="python -m bench.profile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("framework", choices=FRAMEWORKS)
    made.add_argument("chapter", choices=WORKLOADS)
    rows = "how many operations to list (%(default)s)"
    made.add_argument("--rows", type=count(REPEATS), default=12, metavar="N", help=rows)
    flags = made.parse_args(argv)
    backend: Any = import_backend(flags.framework, flags.chapter, cores())
    wanted, chosen = DeviceRequest(1, "cpu", cores()), options(flags.framework, flags.chapter)

    def work(process: Process) -> None:
        devices = backend.devices(process, wanted).local
        report(Ours(backend, WORKLOADS[flags.chapter], devices, chosen), flags)

    # As DistributedDataParallel wants it; one device needs no other process.
    backend.launch(work, wanted, chosen)


def report(ours: Ours, flags: argparse.Namespace) -> None:
    """Profiles some steps and prints what they spent."""
    workload, steps = ours.workload, STEPS[flags.chapter]
    data = load("auto", None, lambda _: None, progress=False)
    examples = steps * workload.batch_size
    some = data.train_images[:examples], data.train_labels[:examples]
    ours.train(some)  # compiles
    begun = time.perf_counter()
    ours.train(some)
    passed = time.perf_counter() - begun
    spent = PROFILERS[flags.framework](lambda: ours.train(some))
    print(f"{SPECS[flags.chapter].net}, {flags.framework}: {1e3 * passed / steps:.0f} ms a step\n")
    print("\n".join(table(spent, steps, flags.rows)))


if __name__ == "__main__":
    raise SystemExit(status("python -m bench.profile", main))
