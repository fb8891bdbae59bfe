"""A process that is the scheduler of MXNet's dist kvstore, or one of its servers, which add.

python -m frameworks.mxnet.server ROLE PARENT
"""

import ctypes
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

from common.base.children import end_with
from common.base.signals import ENDING, let_through


def main(role: str, parent: str) -> int:
    """Serves, and ends with the parent at the latest."""
    for number in ENDING:  # a launcher may send them to all processes: who trains ends in order
        signal.signal(number, signal.SIG_IGN)
    let_through()
    end_with(int(parent))
    return serve(role)


def serve(role: str) -> int:
    """Is the "scheduler" or a "server" until all workers are through; returns an exit status.

    To import MXNet in such a role does the same, but takes seconds, and that server unpickles what
    anyone sends to its port.
    """
    found = find_spec("mxnet")
    if found is None or not found.submodule_search_locations:
        return 1
    os.environ["DMLC_ROLE"] = role
    library = ctypes.CDLL(str(Path(found.submodule_search_locations[0]) / "libmxnet.so"))
    handle = ctypes.c_void_p()
    kind_of_command = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    nothing = kind_of_command(lambda *command: None)
    status: int = library.MXKVStoreCreate(b"dist", ctypes.byref(handle))
    return status or int(library.MXKVStoreRunServer(handle, nothing, None))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
