"""What a framework reads of the environment, beside what a run asks of it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from common.base.errors import RequestError
from common.terminal.text import gist, storable


@dataclass(frozen=True)
class Environment:
    """The variables by which a framework computes otherwise, and what is done about each.

    `decided` are those that layouts, precision or devices depend on: every run sets them, or
    removes them (None), whatever they were. `defaults` are set where the user has not set them.
    `rounding` names those that may change the last bits: they stay, and a record names them.
    `breaking` names what else may end a run. Of all these, `fatal` ones may end the process without
    an exception, so `trial` is run in another one first. `roles` say which process this is to the
    framework itself, too: once the run knows, it removes them, before the framework is loaded.
    """

    decided: Mapping[str, str | None] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    rounding: tuple[str, ...] = ()
    breaking: tuple[str, ...] = ()
    fatal: tuple[str, ...] = ()
    trial: str = ""
    roles: tuple[str, ...] = ()

    def apply(self) -> None:
        """Sets what every run decides, before the framework is loaded."""
        for name, value in self.decided.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for name, value in self.defaults.items():
            os.environ[name] = os.environ.get(name) or value

    def forget(self) -> None:
        """Removes what a launcher, or an earlier job, has told the framework itself."""
        for name in self.roles:
            os.environ.pop(name, None)

    def found(self) -> dict[str, str]:
        """What may change rounding, where it is not as in other runs: by name, as it is set."""
        return {k: storable(v) for k, v in _set(self.rounding) if v != self.defaults.get(k)}

    def suspects(self) -> str:
        """The variables that may be why a run failed, in words; empty if none is set."""
        return _in_words({**self.found(), **dict(_set((*self.breaking, *self.fatal)))})

    def require_harmless(self, framework: str) -> None:
        """Raises RequestError if a variable ends every process that loads the framework."""
        found = dict(_set(self.fatal))
        if found and (told := last_words(self.trial, *found.items())):
            raise RequestError(
                f"{framework} ends when it reads {_in_words(found)} ({told}): "
                "set it right, or unset it"
            )


@cache
def last_words(trial: str, *_: tuple[str, str]) -> str:
    """What another process says that runs the trial and fails, with such variables; else nothing.

    It is asked once: a process may do many runs.
    """
    tried = [sys.executable, "-c", trial]
    done = subprocess.run(
        tried, capture_output=True, text=True, errors="backslashreplace", check=False
    )
    # Google's libraries say first when they say it, and where in their code.
    return re.sub(r"^[IWEF]\d{4} .*?\] ", "", gist(done.stderr)) if done.returncode else ""


def _set(names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, value) for name in names if (value := os.environ.get(name))]


def _in_words(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={storable(value)}" for name, value in found.items())
