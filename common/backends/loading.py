"""Loads the backend of a framework: nothing else in the project imports one by name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from common.backends.frameworks import Environment
from common.backends.interface import Chapter
from common.base.errors import RequestError, RunError, UnforeseenError, gist, reason
from common.base.machine import find_cards, keep_memory, native_errors_held_back


def package(framework: str) -> Any:
    """What of a framework is known without loading it: the names in its `__init__.py`.

    DISTRIBUTIONS, the packages whose versions a record names, its own first; PRELOAD, the modules
    that processes share; ONE_THREAD_EACH, whether several CPU devices may have no more than one
    thread each; ENVIRONMENT, the variables that it reads; `for_gpus`, which tells of its build.
    """
    return import_module(f"frameworks.{framework}")


def placed(framework: str, kind: str, devices: int | None, processes: int = 1) -> tuple[str, int]:
    """The kind of a run's devices, "cpu" or "gpu", and their number, from what is asked for.

    "auto": GPUs, if the driver shows some and the framework's build is for them. Without a number:
    one device for each of several processes, else every GPU there is, or 2 CPU devices.
    """
    gpus = 0
    if kind != "cpu" and package(framework).for_gpus():
        gpus = len(find_cards(os.environ.get("CUDA_VISIBLE_DEVICES")))
    if kind == "auto":
        kind = "gpu" if gpus else "cpu"
    return kind, devices or (processes if processes > 1 else gpus or 2)


def preload(framework: str, *modules: str) -> None:
    """Loads modules, and a framework where it can be: processes that are forked later need not."""
    for module in modules:
        import_module(module)
    with suppress(Exception), native_errors_held_back():  # a run says in a line what it is
        for module in package(framework).PRELOAD:
            import_module(module)


def import_backend(framework: str, chapter: str, threads: int, tf32: bool = False) -> Chapter:
    """A chapter of one framework. Raises RequestError if the framework cannot be loaded."""
    environment: Environment = package(framework).ENVIRONMENT
    environment.require_harmless(framework)
    keep_memory()
    set_tf32(tf32)
    # Read once, when a framework loads its OpenMP runtime.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    # By itself, a thread of GNU's that finds no work looks for 4 ms before it sleeps, with this for
    # 0.03 ms, as long as it takes to wake it. Beside other programs, the thread that all wait for
    # got no core meanwhile: a step of LeNet took a hundred times as long.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    try:
        with native_errors_held_back():
            return backend(framework, chapter)
    except Exception as error:  # whatever it raises that is set up wrongly
        raise RequestError(why_not(framework, chapter, error)) from None


def why_not(framework: str, chapter: str, error: Exception) -> str:
    """Why a framework or its backend cannot be imported, and what helps, in a line."""
    said = gist(str(error)) if str(error) else type(error).__name__
    missing = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    advice = f"`nox -s {framework}` installs it"
    if missing and find_spec(missing) is None:  # most packages are called like their modules
        advice = f"{advice}, `python -m pip install {missing}` adds it to this Python"
    elif "libcuda" in said:
        advice = f"its build for GPUs needs NVIDIA's driver; with ACCELERATOR=cpu, {advice}"
    elif blamed := package(framework).ENVIRONMENT.blame(framework):
        said, advice = f"{said}{blamed}", "set it right, or unset it"
    else:
        code = f"from frameworks.chapters import {chapter}; {chapter}('{framework}')"
        advice = f'it is installed; `python -c "{code}"` tells more'
    return f"{framework} cannot be imported here ({said}): {advice}"


@contextmanager
def variables_blamed(framework: str) -> Iterator[None]:
    """Adds to what the framework raises meanwhile the variables that may be why, as a RunError."""
    blamed = package(framework).ENVIRONMENT.blame(framework)  # now: the run sets some itself
    try:
        yield
    except Exception as error:
        foreseen = isinstance(error, RequestError | RunError)
        if not blamed or (foreseen and not isinstance(error, UnforeseenError)):
            raise
        raise RunError(f"{reason(error)}{blamed}") from error


def set_tf32(tf32: bool) -> None:
    """Lets NVIDIA's libraries multiply with fewer bits, or not; they ask when they are loaded."""
    if tf32:
        os.environ.pop("NVIDIA_TF32_OVERRIDE", None)
    else:
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"


def primitives(framework: str) -> Any:
    return import_module(f"frameworks.{framework}.primitives")


def backend(framework: str, chapter: str) -> Chapter:
    """One chapter in one framework: its listing, and what the harness needs beside it."""
    module = import_module("frameworks.chapters")
    loaded: Chapter = getattr(module, chapter)(framework)
    return loaded
