"""Loads the backend of a framework, and sets what has to be set before."""

import importlib
import os
from typing import Any

from common.backends.interface import Chapter
from common.base.errors import RequestError
from common.base.machine import native_errors_held_back
from common.base.malloc import keep_memory


def one_thread_each(framework: str) -> bool:
    """Whether several CPU devices of a framework may have no more than one thread each."""
    package: Any = importlib.import_module(f"frameworks.{framework}")
    return bool(package.ONE_THREAD_EACH)


def import_backend(framework: str, chapter: str, threads: int) -> Chapter[Any, Any]:
    """The module of one chapter in one framework. Raises RequestError if it is not installed."""
    keep_memory()
    # Read once, when a framework loads its OpenMP runtime.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        with native_errors_held_back():
            module: Any = importlib.import_module(f"frameworks.{framework}.{chapter}")
    except ImportError as error:
        raise RequestError(
            f"{framework} cannot be imported here ({error}): `nox -s {framework}` installs it"
        ) from None
    backend: Chapter[Any, Any] = module
    return backend
