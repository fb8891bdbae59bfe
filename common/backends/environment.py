"""What a framework reads of the environment, beside what a run asks of it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from common.base.errors import RequestError
from common.terminal.text import gist, storable


@dataclass(frozen=True)
class Environment:
    """The variables by which a framework computes otherwise, and what is done about each.

    In names, `*` stands for anything. A run sets what is `decided`, removes what is `removed`, and
    sets each of `defaults` that the user has not set. A record names `rounding` variables, the
    error line of a failed run also `breaking` ones. `fatal` ones may end the process without an
    exception, so another process runs `trial` first. `roles` tell the framework which process
    this is; they are removed once the run has read them.
    """

    decided: Mapping[str, str] = field(default_factory=dict)
    removed: Sequence[str] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    rounding: Sequence[str] = ()
    breaking: Sequence[str] = ()
    fatal: Sequence[str] = ()
    trial: str = ""
    roles: Sequence[str] = ()

    def apply(self) -> None:
        """Sets what every run decides, before the framework is loaded."""
        for name in list(matching(self.removed)):
            del os.environ[name]
        for name, value in self.defaults.items():
            os.environ[name] = os.environ.get(name) or value
        os.environ.update(self.decided)

    def forget(self) -> None:
        """Removes what a launcher, or an earlier job, has told the framework itself."""
        for name in list(matching(self.roles)):
            del os.environ[name]

    def found(self) -> dict[str, str]:
        """Variables that may change rounding and are not as in other runs: name to value."""
        return self._set(self.rounding)

    def suspects(self) -> str:
        """The variables that may be why a run failed, in words; empty if none is set."""
        return _in_words(self._set([*self.rounding, *self.breaking, *self.fatal]))

    def require_harmless(self, framework: str) -> None:
        """Raises RequestError if a variable ends every process that loads the framework."""
        found = self._set(self.fatal)
        if found and (told := last_words(self.trial, *found.items())):
            raise RequestError(
                f"{framework} ends when it reads {_in_words(found)} ({told}): "
                "set it right, or unset it"
            )

    def _set(self, names: Sequence[str]) -> dict[str, str]:
        """Variables with these names that the user has set: name to value."""
        values = {name: os.environ[name] for name in sorted(matching(names))}
        given = {name: value for name, value in values.items() if name not in self.roles}
        return {k: storable(v) for k, v in given.items() if v and v != self.defaults.get(k)}


def matching(names: Sequence[str]) -> Iterator[str]:
    """The variables that are there and have one of these names, in which `*` is anything."""
    return (each for each in os.environ if any(fnmatchcase(each, name) for name in names))


@cache
def last_words(trial: str, *_: tuple[str, str]) -> str:
    """What another process says that runs the trial and fails, with such variables; else nothing.

    It is asked once: a process may do many runs.
    """
    how: Any = {"capture_output": True, "text": True, "errors": "backslashreplace"}
    done = subprocess.run([sys.executable, "-c", trial], check=False, **how)
    # Google's libraries say first when they say it, and where in their code.
    return re.sub(r"^[IWEF]\d{4} .*?\] ", "", gist(done.stderr)) if done.returncode else ""


def _in_words(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in found.items())
