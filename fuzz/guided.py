"""One reader under Atheris, in a process of its own: what a new input reaches is kept and mutated.

It ends with the process that has started it, or with a finding.
"""

import os
import sys
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final

import atheris

from common.base.children import end_with

LARGEST: Final = 16_384
"""Bytes of an input that is kept."""


def main(reader: str, folder: Path, inputs: int, seed: int) -> None:
    """Reads so many inputs. `folder` gets the seeds in `corpus`, and an input that is a finding."""
    end_with(os.getppid())
    # Only what is imported meanwhile tells what of it is reached.
    with atheris.instrument_imports(include=["common", "bench", "safetensors", "gzip"]):
        from fuzz.targets import TARGETS, check
        from fuzz.watch import Watch
    target = TARGETS[reader]
    corpus, place = folder / "corpus", folder / "files"
    for each in (corpus, place):
        each.mkdir()
    for number, content in enumerate(target.seeds()):
        (corpus / str(number)).write_bytes(content)
    (folder / "outside.safetensors").write_bytes(b"no reader opens this")
    warnings.simplefilter("error")  # what a command would print, in the midst of its answer
    watch = Watch(place)

    def one(content: bytes) -> None:
        if wrong := check(target, content, place, watch):
            raise RuntimeError(wrong)

    def mutate(content: bytes, largest: int, number: int) -> bytes:
        rng = Random(number)
        if rng.random() < 0.1:
            changed: bytes = atheris.Mutate(content, largest)
            return changed
        return target.mutate(content, rng)[:largest]

    limits = ["-timeout=60", f"-max_len={LARGEST}", "-len_control=0", "-reload=0"]
    # Where most of a file must be right, a smaller one is no better, nor one that is changed more.
    limits += ["-reduce_inputs=0", "-mutate_depth=2"]
    told = ["-print_final_stats=1", f"-artifact_prefix={folder}{os.sep}"]
    flags: list[Any] = [f"-runs={inputs}", f"-seed={seed}", *limits, *told, str(corpus)]
    atheris.Setup([sys.argv[0], *flags], one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
