"""How native libraries hand out memory, and how long their threads wait for work."""

import ctypes
import os
import sys
from typing import Final

GLIBC: Final = {
    "MALLOC_MMAP_MAX_": (-4, 0),  # no block mapped by itself
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**31 - 1),  # nothing given back to the system
    "MALLOC_ARENA_MAX": (-8, 1),  # one heap for all threads
}
"""Variable, number and value of each parameter, as mallopt(3) of GNU's C library names them."""

SPIN_COUNT: Final = ("GOMP_SPINCOUNT", "2000")
"""How often a thread of GNU's OpenMP looks for work: 0.03 ms, as long as it takes to wake it."""

BY_USER: Final = (SPIN_COUNT[0], "OMP_WAIT_POLICY")


def keep_memory() -> None:
    """Keeps what is freed in this process and in those it starts, where the C library is GNU's.

    Otherwise a large array goes back to the system when it is freed, and the next one gets pages
    that the system has to clear first, at every step. What the environment says already, stays.
    """
    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "gnu_get_libc_version"):
        return
    for variable, (parameter, value) in GLIBC.items():
        if variable not in os.environ:
            libc.mallopt(parameter, value)
            os.environ[variable] = str(value)  # read when a process starts


def wait_briefly() -> None:
    """Lets OpenMP's threads sleep that find no work for a moment, unless the environment decides.

    By itself it looks for 4 ms. Beside other programs, the thread that all wait for gets no core
    meanwhile: a step of LeNet took a hundred times as long. OpenMP reads it when it is loaded.
    """
    if not any(name in os.environ for name in BY_USER):
        os.environ.update([SPIN_COUNT])
