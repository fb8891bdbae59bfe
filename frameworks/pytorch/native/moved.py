"""What PyTorch moves between processes: its profiler sees every collective, with its shapes."""

from collections import Counter
from collections.abc import Callable
from math import prod
from typing import Any, Final

from torch import distributed as dist
from torch.profiler import ProfilerActivity, profile

from common.base.errors import RunError
from common.base.machine import native_errors_held_back
from common.parallel.ledger import Collective
from frameworks.pytorch.hosts import gathered_values

KINDS: Final = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "_all_gather_base": "all-gather",
    "broadcast": "broadcast",
    "send": "send",
}
"""What Gloo does, by its names. It scatters by an all-reduce of the whole."""


def moved(step: Callable[[], object], itemsize: int) -> list[Collective]:
    """What all processes move in a step of numbers of so many bytes."""
    watched = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with native_errors_held_back(), watched as seen:  # it says when it begins and ends
        step()
    if any(event.name.startswith("nccl:") for event in seen.events() or ()):
        raise RunError("what NCCL moves is not counted: ask for --device-kind cpu")
    sizes = Counter[str]()
    for event in seen.events() or ():
        engine, _, name = event.name.partition(":")
        if engine == "gloo" and name in KINDS:
            shapes: Any = event.input_shapes
            whole = dist.get_world_size() if KINDS[name] == "all-gather" else 1
            sizes[KINDS[name]] += itemsize * whole * sum(map(prod, shapes))
    every = [Counter(each) for each in gathered_values(sizes)]
    sizes["send"] = sum(each["send"] for each in every)
    return [Collective(kind, size) for kind, size in sorted(sizes.items()) if size]
