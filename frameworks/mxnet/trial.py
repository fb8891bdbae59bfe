"""Loads MXNet and computes a sum, in a process of its own, which MXNet may end."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Ends with status 0 if MXNet does what it is asked for, or is not installed; else says why."""
    try:
        import mxnet

        mxnet.nd.ones((2, 2)).sum().wait_to_read()
    except (ImportError, OSError):  # the process that is going to train says so
        os._exit(0)
    except Exception as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)  # it may hang, or complain once more, as Python ends
