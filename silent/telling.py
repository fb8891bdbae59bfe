"""What every case prints: what is right, what came, and what to write instead."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

NOTICED: Final = 1e-6
"""Right is what is nearer, divided by the largest number expected. The wrongs are far larger."""


def tell(version: str, expected: Any, came: Mapping[str, Any], instead: Mapping[str, Any]) -> None:
    """Prints the case. Ends the program with status 1 if what came is right, or the cure wrong.

    `came` and `instead` have the numbers, by what was written to get them.
    """
    expected = np.asarray(expected, "float64")
    cures = {f"instead: {name}": numbers for name, numbers in instead.items()}
    rows = {"expected": expected, **came, **cures}
    told = {name: "" if name == "expected" else _told(expected, x) for name, x in rows.items()}
    widths = max(map(len, rows)), max(map(len, map(_text, rows.values())))
    print(version.partition("+")[0])  # a build for CPUs alone has "+cpu" at the end
    for name, numbers in rows.items():
        print(f"{name:{widths[0]}}  {_text(numbers):{widths[1]}}  {told[name]}".rstrip())
    changed = [f"{name}: this version gets it right" for name in came if told[name] == "right"]
    spoilt = [name for name in cures if told[name] != "right"]
    changed += [f"{name}: this version gets it wrong, too" for name in spoilt]
    if changed:
        sys.exit("\n".join(f"{each}; change docs/silent.md" for each in changed))


def _text(numbers: Any) -> str:
    return " ".join(f"{each:.4g}" for each in np.ravel(np.asarray(numbers, "float64")))


def _told(expected: Any, numbers: Any) -> str:
    numbers = np.asarray(numbers, "float64")
    if numbers.shape != expected.shape:
        return f"wrong: {numbers.size} of {expected.size} numbers"
    apart = np.abs(numbers - expected).max() / np.abs(expected).max()
    return "right" if apart < NOTICED else f"wrong by {apart:.2g}"
