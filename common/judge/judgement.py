"""A judgement, how it comes about, and in which arrays a reader's code gets its input."""

import re
import signal
import tomllib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from common.base.errors import RequestError

TEXTS: Final = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
"""For each kind of code what it has to do, what is not tried, and hints by a word."""

MOST: Final = 8
"""The most devices over which code is judged."""

Cases = Generator[str, None, str | tuple[str, str, str]]
"""Yields each case before it is judged; returns what is right. Raises WrongError.

What is right may come with a `but`, and with the word of a hint.
"""


class WrongError(Exception):
    """What is wrong in the case that is being judged, and the word of a hint."""


class Judgement(NamedTuple):
    """Whether code is right, or None if it is not judged, and what a reader sees.

    It is true where the code is right.
    """

    right: bool | None
    text: str

    def __bool__(self) -> bool:
        return bool(self.right)

    def _ipython_display_(self) -> None:
        """Nothing: a cell that ends with `check` has printed it."""


@dataclass(frozen=True)
class Setting:
    """The devices, how a copy of an array gets to one, and what else was asked for."""

    devices: Sequence[Any] = range(MOST)
    place: Callable[[Any, Any], Any] = lambda values, device: values
    immutable: bool = False
    dtype: str = ""
    net: str = "lenet"
    clip: float = inf

    def hand(self, values: Any, device: int = 0) -> Any:
        """A copy of an array on a device."""
        return self.place(values.copy(), self.devices[device])


def in_framework(
    framework: str | None, devices: Sequence[Any] | None = None, **asked: Any
) -> Setting:
    """NumPy's setting, or a framework's with simulated devices. Raises RequestError."""
    if framework is None:
        return Setting(**asked)
    from common.backends.interface import DeviceRequest, Process
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
    texts, case, setting = TEXTS[kind], "", setting or Setting()
    function = getattr(import_module(f"common.judge.{texts['module']}"), f"judge_{kind}")
    cases: Cases = function(candidate, setting)
    try:
        while True:
            case = f"at {next(cases)}: "
            hear(case)
    except StopIteration as end:
        value, but, hint = end.value if isinstance(end.value, tuple) else (end.value, "", "right")
        right, first = True, f"right{but and f', but {but}'}: {value}"
    except WrongError as wrong:
        what, hint = wrong.args
        right, first = False, f"wrong: {case}{what}"
    except RequestError as error:
        raise RequestError(f"{case}{error}") from None
    untried = texts["untried" if setting.clip == inf else "clipped"]
    return Judgement(right, f"{first}\nhint: {texts[hint]}\nnot tried: {untried}")


def kind_of(candidate: Any) -> str:
    """The last kind in the name of a function or class; nothing if there is none."""
    name = getattr(candidate, "__name__", type(candidate).__name__).lower()
    named = [kind for kind in TEXTS if re.search(f"{kind}(?!e?d)", name)]  # not: pipelined
    return max(named, key=name.rfind, default="")


def check(
    candidate: object,
    kind: str = "",
    framework: str | None = None,
    devices: Sequence[Any] | None = None,
    timeout: float = 60.0,
    **asked: Any,
) -> Judgement:
    """Prints and returns the verdict on a function or an object: true where it is right.

    Without a `kind`, the name decides. A notebook gives the `devices` that its
    framework has already. `asked` has `net`, `dtype` or `clip`, as the command has.
    """
    kind = kind or kind_of(candidate)
    try:
        if kind not in TEXTS:
            raise RequestError(f"say which kind it is: kind= is one of {', '.join(TEXTS)}")
        with at_most(timeout):
            judgement = judge(kind, candidate, in_framework(framework, devices, **asked))
    except (RequestError, RuntimeError, TimeoutError) as error:
        # A framework may have its devices already.
        judgement = Judgement(None, f"not judged: {error}")
    print(judgement.text)
    return judgement


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in the code within after so many seconds."""

    def end(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds:g} seconds (timeout=)")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
