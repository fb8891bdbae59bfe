"""Training through kills: a run is killed on its way, and goes on. Only the standard library."""

import json
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

LOOK: Final = 2
"""Seconds between two looks at how far a run has come."""


def newest(folder: Path, name: str) -> dict[str, Any]:
    """The newest checkpoint of a run's name in a folder; empty if there is none."""
    # By their steps: a clock may have been set back since.
    steps = {int(path.stem.split("-step")[1]): path for path in folder.glob(f"{name}-step*.json")}
    found = [steps[step] for step in sorted(steps)]
    content: dict[str, Any] = json.loads(found[-1].read_text()) if found else {}
    return content


def kill_on_its_way(
    command: Sequence[str], folder: Path, name: str, epochs: int, kills: int
) -> None:
    """Starts a command that resumes from checkpoints in `folder`, and kills it, `kills` times.

    The moments are spread over its epochs, each at random within one. Kills of an earlier call,
    which the checkpoints tell of, count.
    """
    done = len(newest(folder, name).get("resumed", []))
    while done < kills:
        wanted = (done + 1) * epochs // (kills + 1)
        with started(command) as run:
            while run.poll() is None and len(newest(folder, name).get("epochs", [])) < wanted:
                time.sleep(LOOK)
            if run.poll() is not None:
                return
            last = newest(folder, name)["epochs"][-1]
            time.sleep(random.uniform(0, last["seconds"]))
            run.kill()
        done += 1


@contextmanager
def started(command: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A command under way. Whatever goes wrong meanwhile ends it, too: it keeps a checkpoint."""
    with subprocess.Popen(command) as run:
        try:
            yield run
        except BaseException:
            run.terminate()
            raise
