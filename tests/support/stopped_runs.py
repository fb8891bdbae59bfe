"""Commands that are held at a moment of their way, so that something can be done to them there."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

from killed_runs import Runner, descendants, require_gone
from started import SECONDS

HOLDING = Path(__file__).parent / "holding"
"""What makes a Python wait, whose path it is on."""


@dataclass
class Ended:
    """How a command has ended."""

    status: int
    said: str


@dataclass
class Held:
    """A command that stands still, and everyone who belongs to it."""

    run: "subprocess.Popen[str]"
    everyone: list[int]

    def __call__(self) -> Ended:
        """Lets it go on to its end."""
        _tell(self.everyone, SIGCONT)
        return ended(self.run, self.everyone)


def waits_after(checkpoint: str, hold: Path) -> dict[str, str]:
    """The environment of a run that replaces no file after the checkpoint while there is `hold`.

    However busy the machine: whoever looks for the checkpoint finds the run where it left it.
    """
    path = os.pathsep.join([str(HOLDING), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return {"PYTHONPATH": path, "HELD_AFTER": checkpoint, "HELD_BY": str(hold)}


@contextmanager
def held_at_a_checkpoint(runner: Runner, name: str, *flags: str) -> Iterator[Held]:
    """A run that stands still after it has left a checkpoint in the folder `name`.

    Nobody is left in the end, whatever happens.
    """
    checkpoint, hold = f"{runner.name}-step2.json", runner.folder / "hold"
    hold.touch()
    run = runner.start(name, *flags, environment=waits_after(checkpoint, hold))
    try:
        _wait(run, runner.folder / name / checkpoint)
        everyone = [run.pid, *descendants(run.pid)]
        _tell(everyone, SIGSTOP)
        hold.unlink()
        yield Held(run, everyone)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, SIGKILL)
        run.communicate()


def ended(run: "subprocess.Popen[str]", everyone: list[int]) -> Ended:
    """How a command ends; nobody whom it has started is left."""
    _, said = run.communicate(timeout=SECONDS)
    require_gone(everyone)
    return Ended(run.returncode, said)


def _tell(everyone: list[int], number: int) -> None:
    for process in everyone:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _wait(run: "subprocess.Popen[str]", path: Path) -> None:
    limit = time.monotonic() + SECONDS
    while not path.exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.002)
