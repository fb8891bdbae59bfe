"""A judgement, how it comes about, and in which arrays a reader's code gets its input."""

import tomllib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from common.base.errors import RequestError

TEXTS: Final = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
"""For each kind of code what it has to do, what is not tried, and hints by a word."""

MOST: Final = 8
"""The most devices over which code is judged."""

Cases = Generator[str, None, str]
"""Yields each case before it is judged; returns what is right. Raises WrongError."""


class WrongError(Exception):
    """What is wrong in the case that is being judged, and the word of a hint."""


class Judgement(NamedTuple):
    """Whether code is right, and the three lines that a reader sees."""

    right: bool
    text: str


@dataclass(frozen=True)
class Setting:
    """The devices, how a copy of an array gets to one, and what else was asked for."""

    devices: Sequence[Any] = range(MOST)
    place: Callable[[Any, Any], Any] = lambda values, device: values
    immutable: bool = False
    dtype: str = ""
    net: str = "lenet"

    def hand(self, values: Any, device: int = 0) -> Any:
        """A copy of an array on a device."""
        return self.place(values.copy(), self.devices[device])


def in_framework(
    framework: str | None, devices: Sequence[Any] | None = None, **asked: str
) -> Setting:
    """NumPy's setting, or a framework's with simulated devices. Raises RequestError."""
    if framework is None:
        return Setting(**asked)  # type: ignore[arg-type]
    from common.backends.devices import DeviceRequest, Process
    from common.backends.loading import import_backend, primitives

    if devices is None:
        chapter: Any = import_backend(framework, "scratch", 1)
        devices = chapter.devices(Process(), DeviceRequest(MOST, "cpu", 1)).local
    immutable, place = framework in ("jax", "tensorflow"), primitives(framework).place
    return Setting(devices[:MOST], place, immutable, **asked)


def require(right: object, what: str, hint: str) -> None:
    if not right:
        raise WrongError(what, hint)


def judge(
    kind: str,
    candidate: object,
    setting: Setting | None = None,
    hear: Callable[[str], object] = str,
) -> Judgement:
    """Judges a function or an object; `hear` is called with each case before it is tried."""
    texts, case = TEXTS[kind], ""
    function = getattr(import_module(f"common.judge.{texts['module']}"), f"judge_{kind}")
    cases: Cases = function(candidate, setting or Setting())
    try:
        while True:
            case = f"at {next(cases)}: "
            hear(case)
    except StopIteration as end:
        right, first, hint = True, f"right: {end.value}", "right"
    except WrongError as wrong:
        what, hint = wrong.args
        right, first = False, f"wrong: {case}{what}"
    except RequestError as error:
        raise RequestError(f"{case}{error}") from None
    return Judgement(right, f"{first}\nhint: {texts[hint]}\nnot tried: {texts['untried']}")


def check(
    candidate: object,
    kind: str = "",
    framework: str | None = None,
    devices: Sequence[Any] | None = None,
) -> None:
    """Prints the verdict on a function or an object, a hint, and what was not tried.

    The kind is the last one that its name has in it: `my_allreduce` is an allreduce. A notebook
    gives the `devices` that its framework has already.
    """
    name = getattr(candidate, "__name__", type(candidate).__name__).lower().replace("_", "")
    kind = kind or max((kind for kind in TEXTS if kind in name), key=name.rfind, default="")
    try:
        if kind not in TEXTS:
            raise RequestError(f"say which kind it is: kind= is one of {', '.join(TEXTS)}")
        print(judge(kind, candidate, in_framework(framework, devices)).text)
    except (RequestError, RuntimeError) as error:  # a framework may have its devices already
        print(f"not judged: {error}")
