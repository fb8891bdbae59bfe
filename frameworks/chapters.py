"""The chapters of each framework: its modules, found by name, with what the harness adds."""

from functools import partial
from importlib import import_module
from typing import Any

from common.backends.interface import Chapter


def part(framework: str, name: str) -> Any:
    """A module of a framework."""
    return import_module(f"frameworks.{framework}.{name}")


def scratch(framework: str) -> Chapter:
    """LeNet and a hand-written allreduce."""
    from common.trainers.scratch import FromScratch

    here = part(framework, "devices")
    parts = [part(framework, name) for name in ("scratch", "kernels", "collectives")]
    return FromScratch(here.devices, here.synchronize, *parts)


def concise(framework: str) -> Chapter:
    """ResNet-18 and the framework's own data parallelism."""
    from common.trainers.concise import ByWrapper

    here, launch = part(framework, "devices"), part(framework, "hosts").launch
    parts = [part(framework, name) for name in ("concise", "replicas")]
    return ByWrapper(launch, here.devices, here.synchronize, *parts)


def strategies(framework: str) -> Chapter:
    """LeNet, or a transformer, split by each strategy."""
    from common.trainers.strategies import BySplitting
    from frameworks.strategies.mesh import Split

    here = part(framework, "devices")
    nets = {name: part(framework, name) for name in ("lenet", "gpt", "moe")}
    by_hand = partial(Split, part(framework, "primitives"), nets)
    return BySplitting(here.devices, here.synchronize, by_hand, partial(part, framework))
