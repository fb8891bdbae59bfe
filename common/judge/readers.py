"""A reader's code: it may print, fail, and return the tensors of any framework."""

import io
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from common.base.arrays import Array, on_host
from common.base.errors import RequestError, gist
from common.judge.judgement import WrongError


def load(path: Path, name: str) -> Any:
    """The object of this name in a file, or the file itself where it is a training step."""
    spec = spec_from_file_location("judged", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise RequestError(f"there is no Python file {path}")
    module = sys.modules["judged"] = module_from_spec(spec)  # dataclasses look there
    sys.path.insert(0, str(path.parent))  # it may import its neighbours
    sys.argv = [str(path)]  # it may read its own flags
    call(spec.loader.exec_module, module)
    if name == "step" and hasattr(module, "start"):
        return module
    if not hasattr(module, name):
        raise RequestError(f"{path} has no {name}: name another one as {path}:NAME")
    return getattr(module, name)


def call(function: Any, *arguments: Any) -> Any:
    """The result of a reader's function; what it prints is dropped. Raises RequestError."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        try:
            return function(*arguments)
        except (RequestError, WrongError):  # of a reader's function that this one calls
            raise
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            frames = [frame for frame in frames if "importlib" not in frame.filename]
            lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
            where = f" (line {lines[-1]})" if lines else ""
            why = gist(str(error))
            if isinstance(error, SystemExit):  # argparse prints what is missing
                why = [why, *said.getvalue().splitlines()][-1]
            text = f"{type(error).__name__}: {why}{where}"
    raise RequestError(text)


def as_array(value: Any, what: str) -> Array:
    """A copy in NumPy of a tensor of any framework, or of numbers. Raises RequestError."""
    with suppress(Exception):
        if (array := on_host(value)).dtype.kind in "fiub":
            return array
    raise RequestError(f"{what} is of type {type(value).__name__}, not an array of numbers")


def as_list(value: Any, what: str, count: int = 0) -> list[Any]:
    """A list from a list, a tuple or a stacked array; of `count` items. Raises RequestError."""
    items = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if not items or isinstance(value, str | dict) or getattr(value, "shape", None) == ():
        raise RequestError(f"{what} is of type {type(value).__name__}, where a list is due")
    if count and len(value) != count:
        raise RequestError(f"{what} has {len(value)} items, where {count} are due")
    return list(value)
