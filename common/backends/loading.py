"""Loads the backend of a framework: nothing else in the project imports one by name."""

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from common.backends.interface import Chapter
from common.base.errors import RequestError
from common.base.machine import native_errors_held_back
from common.base.malloc import keep_memory
from common.base.waiting import wait_briefly


def package(framework: str) -> Any:
    """What of a framework is known without loading it: its packages, and what it asks for."""
    return import_module(f"frameworks.{framework}")


def distributions(framework: str) -> tuple[str, ...]:
    """The packages whose versions a record names, the framework's own first."""
    names: tuple[str, ...] = package(framework).DISTRIBUTIONS
    return names


def engine(framework: str, chapter: str, kind: str, how: str = "") -> dict[str, str]:
    """What joins processes on several hosts, and by what they exchange numbers, in words.

    `how` gradients are added, the name of an allreduce or a wrapper, may have an engine of its own.
    """
    about = package(framework)
    name = about.ENGINES.get(how, about.ENGINES[chapter])
    return {"engine": name, "transport": about.TRANSPORTS[kind]}


def one_thread_each(framework: str) -> bool:
    """Whether several CPU devices of a framework may have no more than one thread each."""
    return bool(package(framework).ONE_THREAD_EACH)


def sends_messages(framework: str) -> bool:
    """Whether a process on one host has means to send another one what it has."""
    return bool(package(framework).MESSAGES)


def preload(framework: str, *modules: str) -> None:
    """Loads modules, and a framework where it can be: processes that are forked later need not."""
    for module in modules:
        import_module(module)
    with suppress(ImportError), native_errors_held_back():
        for module in package(framework).PRELOAD:
            import_module(module)


def import_backend(
    framework: str, chapter: str, threads: int, tf32: bool = False
) -> Chapter[Any, Any, Any]:
    """The module of one chapter in one framework, once memory and threads are set.

    With `tf32`, GPUs may multiply with fewer bits. Raises RequestError if the framework is not
    installed.
    """
    keep_memory()
    set_tf32(tf32)
    # Read once, when a framework loads its OpenMP runtime.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        with native_errors_held_back():
            package(framework)  # what it says of waiting, as MXNet's does, comes first
            wait_briefly()
            return backend(framework, chapter)
    except (ImportError, OSError) as error:  # MXNet loads its library by its path
        advice = f"`nox -s {framework}` installs it"
        if "libcuda" in str(error):
            advice = f"its build for GPUs needs NVIDIA's driver; with ACCELERATOR=cpu, {advice}"
        raise RequestError(f"{framework} cannot be imported here ({error}): {advice}") from None


def set_tf32(tf32: bool) -> None:
    """Lets NVIDIA's libraries multiply with fewer bits, or not; they ask when they are loaded.

    MXNet has no other way to say it.
    """
    if tf32:
        os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    else:
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"


def backend(framework: str, chapter: str) -> Chapter[Any, Any, Any]:
    """The module of one chapter in one framework, as it is."""
    module: Any = import_module(f"frameworks.{framework}.{chapter}")
    found: Chapter[Any, Any, Any] = module
    return found


def collectives(framework: str) -> Any:
    """The module of a framework's allreduces."""
    return import_module(f"frameworks.{framework}.collectives")
