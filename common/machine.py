"""What a record says about the machine it was made on; nothing that tells whose it is."""

import os
import platform
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

VECTORS = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX", "asimd": "NEON", "sve": "SVE"}
"""Instructions by which libraries choose their kernels, as Linux and as people call them."""


def describe_machine() -> dict[str, str | int]:
    """The operating system, the processor and its cores, and the Python."""
    information = Path("/proc/cpuinfo")
    known = information.read_text(encoding="utf-8") if information.is_file() else ""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(known),
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
            os.write(original, held.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def processor(information: str) -> str:
    """The processor in Linux's description, with the vector instructions it has.

    Without them, machines whose figures differ by half can have the same name.
    """
    # The first core's lines are as good as any other's.
    pairs = [line.partition(":")[::2] for line in reversed(information.splitlines())]
    known = {key.strip(): value.strip() for key, value in pairs}
    name = known.get("model name") or platform.processor() or "unknown"
    flags = f"{known.get('flags', '')} {known.get('Features', '')}".split()  # of x86 and of ARM
    vectors = ", ".join(title for flag, title in VECTORS.items() if flag in flags)
    return f"{name} ({vectors})" if vectors else name
