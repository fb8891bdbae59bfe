"""What every case prints: what is right, what came, and what to write instead."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

NOTICED: Final = 1e-6  # right is what is nearer, divided by the largest number expected


def tell(version: str, expected: Any, came: Mapping[str, Any], instead: Mapping[str, Any]) -> None:
    """Prints the case. Ends the program with status 1 if what came is right, or the cure wrong.

    `came` and `instead` have the numbers, by what was written to get them.
    """
    cures = {f"instead: {name}": numbers for name, numbers in instead.items()}
    rows = {"expected": expected, **came, **cures}
    arrays = {name: np.asarray(numbers, "float64") for name, numbers in rows.items()}
    texts = {name: " ".join(f"{x:.4g}" for x in array.flat) for name, array in arrays.items()}
    told = {name: _told(arrays["expected"], array) for name, array in arrays.items()}
    widths = max(map(len, rows)), max(map(len, texts.values()))
    print(version.partition("+")[0])  # a build for CPUs alone has "+cpu" at the end
    for name, text in texts.items():
        verdict = "" if name == "expected" else told[name]
        print(f"{name:{widths[0]}}  {text:{widths[1]}}  {verdict}".rstrip())
    changed = [f"{name}: this version gets it right" for name in came if told[name] == "right"]
    changed += [f"{x}: this version gets it wrong, too" for x in cures if told[x] != "right"]
    if changed:
        sys.exit("\n".join(f"{each}; change docs/silent.md" for each in changed))


def _told(expected: Any, numbers: Any) -> str:
    if numbers.shape != expected.shape:
        return f"wrong: {numbers.size} of {expected.size} numbers"
    apart = np.abs(numbers - expected).max() / np.abs(expected).max()
    return "right" if apart < NOTICED else f"wrong by {apart:.2g}"
