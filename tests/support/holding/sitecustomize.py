"""Holds a Python that has this folder on its path, at a moment of its way.

A file has taken its place, and none has since. `HELD_AFTER` is the file's name; the
Python continues as soon as there is none at `HELD_BY`.
"""

import os
import sys
import time
from pathlib import Path


class Hold:
    """Waits before a file takes its place, if the one that `after` names has taken its own."""

    def __init__(self, after: str, by: Path) -> None:
        self.after, self.by, self.left = after, by, False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Is told of all that Python is about to do."""
        if event != "os.rename":
            return
        while self.left and self.by.exists():
            time.sleep(0.002)
        self.left = self.left or Path(str(arguments[1])).name == self.after


if "HELD_AFTER" in os.environ:
    sys.addaudithook(Hold(os.environ["HELD_AFTER"], Path(os.environ["HELD_BY"])))
