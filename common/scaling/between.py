"""Measures between processes on several hosts, each of which has one device.

All that `measure` times on virtual devices is timed here over sockets, by the framework's own
means, and so are training steps of LeNet. All processes do the same; the first one writes.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import engine, import_backend
from common.base.arrays import Array
from common.base.errors import StoppedError
from common.base.signals import stoppable
from common.chapters.scratch import ALLREDUCES, ScratchOptions
from common.models.initial import initial_weights
from common.parallel.schedules import SCHEDULES
from common.scaling.measure import BUDGET, ROUNDS, described, probes_of, quartile
from common.scaling.predict import fit, predict, predict_at_once
from common.scaling.results import Compared, Costs, Measured, Over, Trained, piece
from common.scaling.workloads import Allreduce, Call, Laboratory, Step, Timed, Trial
from common.terminal.streams import open_streams
from common.training.run import software

REPEATS: Final = {Trial: (4, 4, 1), Allreduce: (16, 16, 2), Step: (2, 2, 2)}
"""How often a call is made in a row each time, for short vectors, for medium and for long ones.

Processes never begin at quite the same moment; of several calls in a row, only the first waits. A
trial has several messages in a row itself.
"""

IMAGES: Final = 256
"""How many images a step of LeNet has for each device."""

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""On Linux another one on each machine, and the same on all virtual hosts of one."""


@dataclass(frozen=True)
class Lessons:
    """The calls, by what they are, and the entries of each tensor that a step sums.

    These are the gradients and the loss.
    """

    calls: dict[Timed, Call]
    summed: list[int]


@dataclass(frozen=True)
class Task:
    """What processes are started for; `finish` takes what the first one has found."""

    framework: str
    threads: int
    sizes: Sequence[int]
    finish: Callable[[Measured], None]

    def asked(self) -> dict[str, str]:
        """What all of them have to be asked alike."""
        wanted = {"--framework": self.framework, "--sizes": " ".join(map(str, self.sizes))}
        return {**wanted, **software(self.framework)}

    def __call__(self, process: Process) -> None:
        """Measures as one of all."""
        open_streams()
        chapter: Any = import_backend(self.framework, "scratch", self.threads)
        k, hosts = process.count, process.count // process.local_count
        request = DeviceRequest(k, "cpu", self.threads).on_each(hosts)
        machines = len(set(process.gather(machine())))

        def work(process: Process) -> None:
            local = chapter.devices(process, request).local
            # A client that has the devices of all takes no part in what processes do together.
            names = ALLREDUCES if len(local) < k else SCHEDULES
            lab = Laboratory(chapter, local, (k,), tuple(names))
            found = measured(self, lab, process, machines)
            if process.rank == 0:
                self.finish(found)

        chapter.launch(work, request, ScratchOptions(), process)


def measured(task: Task, lab: Laboratory, process: Process, machines: int) -> Measured:
    """What all processes find, which are on so many machines; each one knows."""
    deadline = time.perf_counter() + BUDGET
    (k,) = lab.counts
    taught = lessons(lab, k)
    seconds = timed(lab, {**lab.calls(task.sizes), **taught.calls}, process, deadline)
    probes = probes_of(seconds)
    costs = fit(probes, len(lab.devices))
    found = [
        compared(costs, key, taken) for key, taken in seconds.items() if isinstance(key, Allreduce)
    ]
    report = described(task.framework, task.threads, probes, costs, found)
    over = Over(
        hosts=list(process.hosts) or [socket.gethostname()] * process.count,
        machines=machines,
        **engine(task.framework, "scratch", "cpu"),
        steps=steps(costs, seconds, k, taught),
    )
    return report.model_copy(update={"over": over})


def machine() -> str:
    """What tells this machine from others, whatever its virtual hosts are called."""
    return BOOT.read_text().strip() if BOOT.exists() else socket.gethostname()


def timed(
    lab: Laboratory, calls: Mapping[Timed, Call], process: Process, deadline: float
) -> dict[Timed, float]:
    """The seconds of every call, as in `measure.timed`: those of the slowest process count.

    Raises StoppedError once a signal has come to any of them.
    """
    (k,) = lab.counts
    begin = lab.allreduce("star", k, lab.vectors(k, 1))
    found: dict[Timed, list[float]] = {key: [] for key in calls}
    with stoppable(patient=True) as stop:
        for call in calls.values():
            lab.once(call)  # compiles
        for number in range(1, ROUNDS.stop):
            for key, call in calls.items():
                lab.once(begin)  # all are here
                repeats = REPEATS[type(key)][piece(key.entries)]
                found[key].append(sum(lab.once(call) for _ in range(repeats)) / repeats)
            late, stopped = time.perf_counter() > deadline, stop.asked
            told = process.gather([late, stopped])
            if any(each[1] for each in told):
                raise StoppedError("stopped, and kept nothing new", status=stop.status)
            if number >= ROUNDS.start and any(each[0] for each in told):
                break
    return {key: quartile(slowest(process, taken)) for key, taken in found.items()}


def slowest(process: Process, taken: Sequence[float]) -> list[float]:
    """The most that any process has taken each time, to a microsecond's tenth."""
    everyones = process.gather([round(each * 1e7) for each in taken])
    return [max(each) / 1e7 for each in zip(*everyones, strict=True)]


def compared(costs: Costs, call: Allreduce, taken: float) -> Compared:
    """An allreduce as it was measured and, from the constants alone, predicted in both ways."""
    at_once, in_turn = predictions(costs, call.algorithm, call.devices, [call.entries])
    return Compared(**call._asdict(), measured=taken, predicted=at_once, in_turn=in_turn)


def predictions(
    costs: Costs, algorithm: str, k: int, sizes: Sequence[int]
) -> tuple[float, float] | tuple[None, None]:
    """The seconds of allreduces one after the other, each of so many entries.

    The first number is for devices that all work at once, the second for those that do so in turn.
    """
    if algorithm not in SCHEDULES:
        return None, None
    at_once = sum(predict_at_once(costs, algorithm, k, entries) for entries in sizes)
    return at_once, sum(predict(costs, SCHEDULES[algorithm](k), entries) for entries in sizes)


def steps(costs: Costs, seconds: Mapping[Timed, float], k: int, taught: Lessons) -> list[Trained]:
    """Training steps as they were measured, and as predicted.

    They compute, and then sum one tensor after the other.
    """
    found = {key: taken for key, taken in seconds.items() if isinstance(key, Step)}
    made = []
    for key, taken in found.items():
        if not key.algorithm:
            continue
        computing = found[key._replace(algorithm="")]
        at_once, in_turn = predictions(costs, key.algorithm, k, taught.summed)
        step = Trained(
            algorithm=key.algorithm,
            images=IMAGES,
            computing=computing,
            measured=taken,
            predicted=None if at_once is None else computing + at_once,
            in_turn=None if in_turn is None else computing + in_turn,
        )
        made.append(step)
    return made


def lessons(lab: Laboratory, k: int) -> Lessons:
    """A step that only computes, and one with each allreduce, on k devices of all processes."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(k * IMAGES, 1, 28, 28)).astype(np.float32)
    y = random.randint(0, 10, k * IMAGES)
    options = ScratchOptions()
    shapes = options.shapes()
    weights = initial_weights(shapes, 0, "float32")
    replicas = lab.chapter.replicate(weights, lab.devices, options)
    gradients = [prod(shape) for shape in shapes.values()]
    entries = sum(gradients)
    calls: dict[Timed, Call] = {Step(entries, ""): partial(computed, lab, X, y, replicas)}
    for name in lab.names:
        chosen = ScratchOptions(allreduce=name)
        calls[Step(entries, name)] = partial(trained, lab, X, y, replicas, chosen)
    return Lessons(calls, [*gradients, 1])


def computed(lab: Laboratory, X: Array, y: Array, replicas: Any) -> list[Any]:
    """The gradients of this process's shards; nothing is sent."""
    found = lab.chapter.parts(X, y, replicas, lab.devices)
    return [value for grads in found for value in grads.values()]


def trained(
    lab: Laboratory, X: Array, y: Array, replicas: Any, options: ScratchOptions
) -> list[Any]:
    """The weights after a step."""
    # The smallest rate: however often a step is made, its numbers stay what they are.
    lab.chapter.train_batch(X, y, replicas, lab.devices, 1e-6, options)
    return [value for params in replicas for value in params.values()]
