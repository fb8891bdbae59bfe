"""What all four frameworks share: data, weights, the training loop, records and parity.

Nothing in here imports a deep learning framework; NumPy 1.23 and NumPy 2 both serve.
"""

import os
import sys

# What imports this first can be read by an older Python; what follows cannot be.
if sys.version_info < (3, 11):  # noqa: UP036
    old = ".".join(str(part) for part in sys.version_info[:2])
    print(f"this is Python {old}: start it with Python 3.11 or a later one", file=sys.stderr)
    raise SystemExit(2)
# Nor are there locks and some signals, which what follows imports.
if not hasattr(os, "fork"):
    where = "start it on Linux, on macOS, or in WSL"
    print(f"this is Windows, which cannot fork a process: {where}", file=sys.stderr)
    raise SystemExit(2)
