"""What every case prints: what is right, what came, and what to write instead."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

NOTICED: Final = 1e-6
"""Right is what is nearer, divided by the largest number expected. The wrongs are far larger."""


def tell(version: str, expected: Any, came: Mapping[str, Any], instead: Mapping[str, Any]) -> int:
    """Prints the case. The status of the command: 0 if all that came is wrong, and the cure right.

    `came` and `instead` have the numbers, by what was written to get them.
    """
    expected = np.asarray(expected, "float64")
    rows = [("expected", _text(expected), "")]
    rows += [(name, _text(each), _told(expected, each)) for name, each in came.items()]
    rows += [(f"instead: {name}", _text(x), _told(expected, x)) for name, x in instead.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    print(version.partition("+")[0])  # a build for CPUs alone has "+cpu" at the end
    for name, numbers, told in rows:
        print(f"{name:{widths[0]}}  {numbers:{widths[1]}}  {told}".rstrip())
    mended = [name for name, each in came.items() if _told(expected, each) == "right"]
    spoilt = [name for name, each in instead.items() if _told(expected, each) != "right"]
    for name in mended:
        print(f"{name}: this version gets it right; change docs/silent.md", file=sys.stderr)
    for name in spoilt:
        print(f"{name}: this version gets it wrong, too; change docs/silent.md", file=sys.stderr)
    return 1 if mended or spoilt else 0


def _text(numbers: Any) -> str:
    return " ".join(f"{each:.4g}" for each in np.ravel(np.asarray(numbers, "float64")))


def _told(expected: Any, numbers: Any) -> str:
    numbers = np.asarray(numbers, "float64")
    if numbers.shape != expected.shape:
        return f"wrong: {numbers.size} of {expected.size} numbers"
    apart = np.abs(numbers - expected).max() / np.abs(expected).max()
    return "right" if apart < NOTICED else f"wrong by {apart:.2g}"
