"""How long the threads of OpenMP, which PyTorch and MXNet have, look for work before they sleep."""

import os
from typing import Final

GNU: Final = "GOMP_SPINCOUNT"
"""How often a thread of GNU's OpenMP, the one that both load, looks for work."""

OWN: Final = (GNU, "OMP_WAIT_POLICY")
"""By these variables a user decides it, or a framework's package."""

LOOKS: Final = 2000
"""0.03 ms here, as long as it takes to wake a thread: `docs/performance.md` has others, too."""


def wait_briefly() -> None:
    """Lets threads that find no work for a moment sleep, unless the environment decides.

    By itself GNU's OpenMP looks 300,000 times, which takes 4 ms of a core. Beside other programs
    the thread that they all wait for is kept from that core meanwhile, and a step of LeNet took a
    hundred times as long. It is read once, when the runtime is loaded, and moves no number.
    """
    if not any(name in os.environ for name in OWN):
        os.environ[GNU] = str(LOOKS)
