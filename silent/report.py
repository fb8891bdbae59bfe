"""The output of every case: the expected numbers, the wrong ones, and those of the remedy."""

import sys
from typing import Any, Final

import numpy as np

TOLERANCE: Final = 1e-6  # relative to the largest expected entry


def report(version: str, expected: Any, results: dict[str, Any], remedies: dict[str, Any]) -> None:
    """Prints the case. Exits with status 1 if a result is right, or a remedy wrong.

    `results` and `remedies` have the numbers by the code that gave them.
    """
    remedies = {f"instead: {name}": numbers for name, numbers in remedies.items()}
    rows = {"expected": expected, **results, **remedies}
    arrays = {name: np.asarray(numbers, "float64") for name, numbers in rows.items()}
    texts = {name: " ".join(f"{x:.4g}" for x in array.flat) for name, array in arrays.items()}
    verdicts = {name: _verdict(arrays["expected"], array) for name, array in arrays.items()}
    widths = max(map(len, rows)), max(map(len, texts.values()))
    print(version.partition("+")[0])  # a build for CPUs ends with "+cpu"
    for name, text in texts.items():
        verdict = "" if name == "expected" else verdicts[name]
        print(f"{name:{widths[0]}}  {text:{widths[1]}}  {verdict}".rstrip())
    changed = [f"{x}: this version gets it right" for x in results if verdicts[x] == "right"]
    changed += [f"{x}: this version gets it wrong, too" for x in remedies if verdicts[x] != "right"]
    if changed:
        sys.exit("\n".join(f"{line}; change docs/silent.md" for line in changed))


def _verdict(expected: Any, numbers: Any) -> str:
    if numbers.shape != expected.shape:
        return f"wrong: {numbers.size} of {expected.size} numbers"
    error = np.abs(numbers - expected).max() / np.abs(expected).max()
    return "right" if error < TOLERANCE else f"wrong by {error:.2g}"
