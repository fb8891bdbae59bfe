"""Watches a reader: what it raises, what it opens and runs, how long it takes, how much memory.

Memory counts on Linux alone: macOS sets the address space no limit.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 2.0
"""Of the processor, for one input. Other work on the machine does not count."""

FORBIDDEN: Final = (
    *("pickle.", "subprocess.", "socket.", "ctypes.", "os.system", "os.exec", "os.fork"),
    *("os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink"),
    *("os.chmod", "os.truncate", "shutil."),
)
"""What no reader does, as the beginnings of the names by which Python tells of it."""

GENERATORS: Final = (
    "dataclasses",
    "typing",
    "importlib._bootstrap",
    "importlib._bootstrap_external",
)
"""The standard modules that may compile: names of fields, and what is imported."""


class Finding(BaseException):
    """What a reader must not do. No `except Exception` in a reader keeps it from being seen."""


class Watch:
    """Lets readers read below a folder, one at a time, and tells what they did wrong.

    Python never forgets a hook: one watch is enough for a process. It sees what Python opens and
    runs; of what a library in another language does it sees the memory, the time and how it ends.
    """

    def __init__(self, folder: Path) -> None:
        self._inside = f"{folder.resolve()}{os.sep}"
        self._seen, self._active = "", False
        self._size = os.open("/proc/self/statm", os.O_RDONLY) if sys.platform == "linux" else None
        signal.signal(signal.SIGPROF, lambda *_: self._found(f"takes more than {SECONDS:g} s"))
        sys.addaudithook(self._hook)

    def see(
        self, read: Callable[[], object], memory: int, refusals: tuple[type[Exception], ...]
    ) -> str:
        """What a reader did wrong; empty if nothing.

        It may take so many bytes of memory, and raise one of the refusals.
        """
        before = resource.getrlimit(resource.RLIMIT_AS)
        if self._size is not None:
            there = int(os.pread(self._size, 32, 0).split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (there + memory, before[1]))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self._seen, self._active = "", True
        try:
            read()
        except refusals:
            pass
        except MemoryError:
            self._seen = self._seen or f"takes more than {memory:,} bytes of memory"
        except BaseException as error:  # a panic of Rust is no Exception
            self._seen = self._seen or f"raises {type(error).__name__}: {str(error)[:300]}"
        finally:
            self._active = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, before)
        return self._seen

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._active:
            return
        if event == "open" and not self._may_open(arguments[0]):
            self._found(f"opens {arguments[0]!r}, which is not in its folder")
        elif event.startswith(FORBIDDEN):
            self._found(f"does {event} {arguments!r}"[:300])
        elif event in ("exec", "compile"):
            maker = str(sys._getframe(1).f_globals.get("__name__", ""))
            if maker not in GENERATORS:
                self._found(f"runs code made in {maker}")

    def _may_open(self, path: Any) -> bool:
        if isinstance(path, int):  # it is open already
            return True
        name = os.path.realpath(os.fsdecode(path))
        library = name.startswith((sys.prefix, sys.base_prefix)) and name.endswith((".py", ".pyc"))
        return name.startswith(self._inside) or library

    def _found(self, what: str) -> None:
        if self._active:
            self._seen = self._seen or what
            raise Finding(what)
