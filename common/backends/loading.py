"""Loads the backend of a framework: nothing else in the project imports one by name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from common.backends.environment import Environment
from common.backends.interface import Chapter
from common.base.errors import RequestError, RunError, UnforeseenError
from common.base.machine import native_errors_held_back
from common.base.tuning import keep_memory, wait_briefly
from common.terminal.text import gist


def package(framework: str) -> Any:
    """What of a framework is known without loading it: its packages, and what it asks for."""
    return import_module(f"frameworks.{framework}")


def distributions(framework: str) -> tuple[str, ...]:
    """The packages whose versions a record names, the framework's own first."""
    names: tuple[str, ...] = package(framework).DISTRIBUTIONS
    return names


def environment(framework: str) -> Environment:
    """What a framework reads of the environment."""
    found: Environment = package(framework).ENVIRONMENT
    return found


def engine(framework: str, chapter: str, kind: str, how: str = "") -> dict[str, str]:
    """What joins processes on several hosts, and by what they exchange numbers, in words.

    `how` is the name of an allreduce or a wrapper, which may have an engine of its own.
    """
    about = package(framework)
    name = about.ENGINES.get(how, about.ENGINES[chapter])
    return {"engine": name, "transport": about.TRANSPORTS[kind]}


def one_thread_each(framework: str) -> bool:
    """Whether several CPU devices of a framework may have no more than one thread each."""
    return bool(package(framework).ONE_THREAD_EACH)


def preload(framework: str, *modules: str) -> None:
    """Loads modules, and a framework where it can be: processes that are forked later need not."""
    for module in modules:
        import_module(module)
    with suppress(Exception), native_errors_held_back():  # a run says in a line what it is
        for module in package(framework).PRELOAD:
            import_module(module)


def import_backend(framework: str, chapter: str, threads: int, tf32: bool = False) -> Chapter:
    """The module of one chapter in one framework, once memory and threads are set.

    With `tf32`, GPUs may multiply with fewer bits. Raises RequestError if the framework is not
    installed, or cannot be loaded.
    """
    found = environment(framework)
    found.forget()
    found.require_harmless(framework)
    keep_memory()
    set_tf32(tf32)
    # Read once, when a framework loads its OpenMP runtime.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    wait_briefly()
    try:
        with native_errors_held_back():
            return backend(framework, chapter)
    except Exception as error:  # whatever it raises that is set up wrongly
        raise RequestError(why_not(framework, chapter, error)) from None


def why_not(framework: str, chapter: str, error: Exception) -> str:
    """Why a framework or its backend cannot be imported, and what helps, in a line."""
    told = gist(str(error)) if str(error) else type(error).__name__
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    package = (missing or "").partition(".")[0]  # most are called like their modules
    advice = f"`nox -s {framework}` installs it"
    if package and find_spec(package) is None:
        advice = f"{advice}, `python -m pip install {package}` adds it to this Python"
    elif "libcuda" in told:
        advice = f"its build for GPUs needs NVIDIA's driver; with ACCELERATOR=cpu, {advice}"
    elif words := suspects(framework):
        told, advice = f"{told}{words}", "set it right, or unset it"
    else:
        code = f"from frameworks.{framework}.chapters import {chapter}; {chapter}()"
        advice = f"it is installed; `python -c '{code}'` tells more"
    return f"{framework} cannot be imported here ({told}): {advice}"


def suspects(framework: str) -> str:
    """What an error line adds: the variables that may be why a framework failed, if any is set."""
    words = environment(framework).suspects()
    return f"; {framework} reads {words}, which is set in the environment" if words else ""


@contextmanager
def suspects_named(framework: str) -> Iterator[None]:
    """Adds them to what the framework raises meanwhile, which becomes a RunError then."""
    words = suspects(framework)  # now: what the run sets itself is not to blame
    try:
        yield
    except Exception as error:
        foreseen = isinstance(error, RequestError | RunError)
        if not words or (foreseen and not isinstance(error, UnforeseenError)):
            raise
        told = str(error) if foreseen else f"{type(error).__name__}: {gist(str(error))}"
        raise RunError(f"{told}{words}") from error


def set_tf32(tf32: bool) -> None:
    """Lets NVIDIA's libraries multiply with fewer bits, or not; they ask when they are loaded."""
    if tf32:
        os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    else:
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"


def backend(framework: str, chapter: str) -> Chapter:
    """One chapter in one framework: its listing, and what the harness needs beside it."""
    module = import_module(f"frameworks.{framework}.chapters")
    made: Chapter = getattr(module, chapter)()
    return made
