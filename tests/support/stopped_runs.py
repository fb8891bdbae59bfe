"""Commands that are held at a moment of their way, so that something can be done to them there."""

import os
from pathlib import Path

HOLDING = Path(__file__).parent / "holding"
"""What makes a Python wait, whose path it is on."""


def waits_after(checkpoint: str, hold: Path) -> dict[str, str]:
    """The environment of a run that replaces no file after the checkpoint while there is `hold`.

    However busy the machine: what looks for the checkpoint finds the run where it left it.
    """
    path = os.pathsep.join([str(HOLDING), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return {"PYTHONPATH": path, "HELD_AFTER": checkpoint, "HELD_BY": str(hold)}
