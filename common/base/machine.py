"""The machine and its GPUs, as a record tells of them, and how libraries use memory and cores."""

import ctypes
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

from common.base.errors import printable

VECTORS = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX", "asimd": "NEON", "sve": "SVE"}
"""Instructions by which libraries choose their kernels, as Linux and as people call them."""

LOOPBACK: Final = "lo0" if sys.platform == "darwin" else "lo"
"""The network interface by which processes of one host connect."""

GLIBC: Final = {
    "MALLOC_MMAP_MAX_": (-4, 0),  # no block mapped by itself
    "MALLOC_TRIM_THRESHOLD_": (-1, 2**31 - 1),  # nothing given back to the system
    "MALLOC_ARENA_MAX": (-8, 1),  # one heap for all threads
}
"""Variable, number and value of each parameter, as mallopt(3) of GNU's C library names them."""

DRIVER_TIMEOUT: Final = 30
"""Seconds in which it answers: a driver that has to be loaded for it takes some."""

VISIBLE: Final = os.environ.get("CUDA_VISIBLE_DEVICES")
"""The GPUs that CUDA shows at first: a run hides those that it does not use."""


def describe_machine() -> dict[str, str | int]:
    """The system, the processor's name with its vector instructions, the cores and Python."""
    source = Path("/proc/cpuinfo")  # only on Linux
    about = source.read_text(encoding="utf-8") if source.is_file() else ""
    model = re.search(r"^model name\s*:(.+)", about, re.MULTILINE)
    name = model[1].strip() if model else platform.processor() or "unknown"
    known = ", ".join(title for flag, title in VECTORS.items() if flag in about.split())
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{name} ({known})" if known else name,
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
    }


def versions(distributions: tuple[str, ...]) -> dict[str, str]:
    """The installed version of each distribution; "none" where it is not installed."""
    installed = dict.fromkeys(distributions, "none")
    for name in distributions:
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def peak_memory() -> int:
    """The most memory that this process has held so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def native_errors_held_back() -> Iterator[None]:
    """Holds back what native code prints, as TensorFlow's greetings; an exception prints it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        original = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            held.seek(0)
            with suppress(OSError):  # it may be closed or full; the exception matters more
                os.write(original, held.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


class Card(NamedTuple):
    """A GPU: the version of NVIDIA's driver, its name, and its compute capability, if known."""

    driver: str
    name: str
    capability: tuple[int, int] | None = None


def count_cards(cards: Sequence[Card]) -> str:
    """Cards by name and number, such as 2 x NVIDIA H100 80GB HBM3."""
    counted = Counter(card.name for card in cards)
    return ", ".join(f"{number} x {name}" for name, number in counted.items())


def find_cards(visible: str | None) -> list[Card]:
    """The GPUs that NVIDIA's driver lists. `visible`: CUDA_VISIBLE_DEVICES, which hides some."""
    query = ["nvidia-smi", "--query-gpu=driver_version,name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, timeout=DRIVER_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    # Beside a lost card it may list others, and still end with another status than 0.
    row = re.compile(r"(\d+(?:\.\d+)+), (.+), (?:(\d+)\.(\d+)|\[.*\])")
    lines = map(str.strip, done.stdout.decode(errors="replace").splitlines())
    cards = [
        Card(driver, printable(name), (int(major), int(minor)) if major else None)
        for driver, name, major, minor in (x.groups() for x in map(row.fullmatch, lines) if x)
    ]
    chosen = [*map(str, range(len(cards)))] if visible is None else visible.split(",")
    if all(name.strip().isdecimal() for name in chosen):
        return [cards[int(name)] for name in chosen if int(name) < len(cards)]
    return cards[: sum(name.startswith(("GPU-", "MIG-")) for name in chosen)]


def gpus_here() -> dict[str, str | int]:
    """The GPUs that a run could choose from, and NVIDIA's driver."""
    if not (cards := find_cards(VISIBLE)):  # the framework may see more
        return {"gpus": "unknown", "driver": "unknown"}
    return {"gpus": count_cards(cards), "driver": cards[0].driver}
