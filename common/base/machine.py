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


def processor() -> str:
    """The processor's name, and its vector instructions."""
    source = Path("/proc/cpuinfo")  # only on Linux
    about = source.read_text(encoding="utf-8") if source.is_file() else ""
    model = re.search(r"^model name\s*:(.+)", about, re.MULTILINE)
    name = model[1].strip() if model else platform.processor() or "unknown"
    known = ", ".join(title for flag, title in VECTORS.items() if flag in about.split())
    return f"{name} ({known})" if known else name


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
