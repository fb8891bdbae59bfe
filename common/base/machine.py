"""What a record says about the machine it was made on; nothing that tells whose it is."""

import os
import platform
import re
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

VECTORS = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX", "asimd": "NEON", "sve": "SVE"}
"""Instructions by which libraries choose their kernels, as Linux and as people call them."""


def describe_machine() -> dict[str, str | int]:
    """The operating system, the processor and its cores, and the Python."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
    }


def peak_memory() -> int:
    """The most memory that this process has held so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts in KiB


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def native_errors_held_back() -> Iterator[None]:
    """Holds back what native code prints to standard error; prints it after all on an exception.

    TensorFlow greets with a few lines while it is loaded, whatever its log level is.
    """
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


def cpu_information() -> str:
    """What Linux says of the cores; nothing on other systems."""
    source = Path("/proc/cpuinfo")
    return source.read_text(encoding="utf-8") if source.is_file() else ""


def processor() -> str:
    """The processor's name, and its vector instructions.

    Without them, machines whose figures differ by half can have the same name.
    """
    model = re.search(r"^model name\s*:(.+)", cpu_information(), re.MULTILINE)
    name = model[1].strip() if model else platform.processor() or "unknown"
    known = ", ".join(vectors())
    return f"{name} ({known})" if known else name


def vectors() -> list[str]:
    """The vector instructions of the cores, as far as they matter here and are known."""
    flags = cpu_information().split()
    return [title for flag, title in VECTORS.items() if flag in flags]


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
