"""Mutations without coverage to lead them: a short look, wherever the tests run."""

from pathlib import Path
from random import Random

from fuzz.targets import Target, check
from fuzz.watch import Watch


def look(
    target: Target, inputs: int, seed: int, folder: Path, watch: Watch
) -> list[tuple[str, bytes]]:
    """What a reader does wrong with so many inputs, each with the input.

    Raises ValueError if a file that is as it should be is not read.
    """
    rng, kept = Random(seed), target.seeds()
    found = [(wrong, each) for each in kept if (wrong := check(target, each, folder, watch))]
    for _ in range(inputs):
        content = rng.choice(kept)
        for _ in range(rng.choice((1, 1, 2, 4))):
            content = target.mutate(content, rng)
        if wrong := check(target, content, folder, watch):
            found.append((wrong, content))
    return found
