"""What a framework reads of the environment, beside what a run asks of it."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from common.base.errors import RequestError
from common.terminal.text import gist


@dataclass(frozen=True)
class Environment:
    """The variables by which a framework computes otherwise, and what is done about each.

    In names, `*` stands for anything. A run sets what is `decided`, removes what is `removed`, and
    sets each of `defaults` that the user has not set. A record names `rounding` variables, the
    error line of a failed run also `breaking` ones. `fatal` ones may end the process without an
    exception, so another process runs `trial` first.
    """

    decided: Mapping[str, str] = field(default_factory=dict)
    removed: Sequence[str] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)
    rounding: Sequence[str] = ()
    breaking: Sequence[str] = ()
    fatal: Sequence[str] = ()
    trial: str = ""

    def apply(self) -> None:
        """Sets what every run decides, before the framework is loaded."""
        unset(self.removed)
        for name, value in self.defaults.items():
            os.environ[name] = os.environ.get(name) or value
        os.environ.update(self.decided)

    def given(self, *names: str) -> dict[str, str]:
        """Variables with these names, or of `rounding`, that the user has set: name to value."""
        values = {name: os.environ[name] for name in sorted(matching(names or self.rounding))}
        return {
            name: value
            for name, value in values.items()
            if value and value != self.defaults.get(name)
        }

    def blame(self, framework: str) -> str:
        """What an error line adds if a variable is set that may be why a run failed."""
        listed = as_text(self.given(*self.rounding, *self.breaking, *self.fatal))
        return f"; {framework} reads {listed}, which is set in the environment" if listed else ""

    def require_harmless(self, framework: str) -> None:
        """Raises RequestError if a variable ends every process that loads the framework."""
        if not (fatal := self.fatal and self.given(*self.fatal)):
            return
        how: Any = {"capture_output": True, "text": True, "errors": "backslashreplace"}
        done = subprocess.run([sys.executable, "-c", self.trial], check=False, **how)
        if done.returncode:
            # Google's libraries say first when they say it, and where in their code.
            reason = re.sub(r"^[IWEF]\d{4} .*?\] ", "", gist(done.stderr))
            what = f"{framework} ends when it reads {as_text(fatal)} ({reason})"
            raise RequestError(f"{what}: set it right, or unset it")


def matching(names: Sequence[str]) -> list[str]:
    """The variables that are set and have one of these names, in which `*` is anything."""
    return [name for name in os.environ if any(fnmatchcase(name, known) for known in names)]


def unset(names: Sequence[str]) -> None:
    for name in matching(names):
        del os.environ[name]


def as_text(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in variables.items())
