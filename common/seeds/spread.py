"""How far accuracies are apart by chance: over the seeds of one framework, and over frameworks."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.base.errors import RequestError, RunError
from common.base.files import require_regular
from common.base.machine import now
from common.chapters.chapters import SPECS
from common.chapters.spec import OneOf
from common.compare.accuracy import accuracy
from common.compare.collect import device_counts, gather, identity
from common.records.record import Record
from common.records.store import read_json
from common.seeds.permutation_test import PermutationTest, Share, permutation_test

FILE = "seeds.json"
"""Where the figures are, in the folder that has the seeds' folders."""


class FrameworkSpread(BaseModel):
    """One framework's accuracies, seed by seed, and their spread over the seeds."""

    framework: Annotated[str, OneOf(FRAMEWORKS)]
    accuracies: list[Share]
    mean: float
    deviation: float
    least: float
    most: float


class Difference(BaseModel):
    """By how much one framework's accuracy is above another's, at the same seed.

    `error` is the standard error of the mean: the deviation over the root of the number of seeds.
    """

    first: str
    second: str
    mean: float
    deviation: float
    error: float


class Spread(BaseModel):
    """All that is known of the accuracies of one setting. Accuracies are shares of the test set.

    Deviations are standard deviations, over n - 1. `over_seeds` is that of one framework's
    accuracies over the seeds, `over_frameworks` that of the frameworks' at one seed: each the root
    of the mean variance.
    """

    chapter: str
    preset: str
    devices: int
    data: str
    train_examples: int
    test_examples: int
    created: str
    seeds: list[int]
    frameworks: list[FrameworkSpread]
    differences: list[Difference]
    over_seeds: Share
    over_frameworks: Share
    test: PermutationTest


def spread_in(
    folder: Path,
    *,
    chapter: str,
    frameworks: Sequence[str],
    seeds: Sequence[int] = (),
    devices: int = 1,
) -> Spread:
    """The spread of the runs in `folder`, which has a folder of records for each seed.

    Without `seeds`, those that are there. Raises RequestError if a run is missing, cannot be
    trusted or is of another setting than the others, and if there are not two of each kind.
    """
    chosen = list(seeds) or seeds_in(folder, chapter, frameworks)
    if len(chosen) < 2 or len(frameworks) < 2:
        raise RequestError(
            f"a spread needs at least two seeds and two frameworks, not {len(chosen)} seeds of "
            f"{chapter} in {folder} and {len(frameworks)} frameworks: `nox -s seeds` makes the runs"
        )
    records = [records_of(folder, seed, chapter, frameworks, devices) for seed in chosen]
    require_one_setting(folder, chosen, [row[0] for row in records])
    config, data = records[0][0].config, records[0][0].data
    figures = np.array([[accuracy(record) for record in row] for row in records])
    return Spread(
        chapter=chapter,
        preset=config.preset,
        devices=devices,
        data=data.name,
        train_examples=data.train_examples,
        test_examples=data.test_examples,
        created=now(),
        seeds=chosen,
        **statistics(figures, frameworks),
    )


def read_spread(folder: Path) -> Spread | None:
    """What `python -m common.seeds` has written there, if it has. Raises RunError if it is none."""
    path = folder / FILE
    try:
        if not path.exists():
            return None
        require_regular(path)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error}") from None
    return read_json(Spread, path, "what `python -m common.seeds` writes")


def seeds_in(folder: Path, chapter: str, frameworks: Sequence[str]) -> list[int]:
    """The seeds that have a folder with a record of the chapter, in order."""
    folders = (path for path in folder.glob("*") if path.name.isdecimal() and path.is_dir())
    whose = chapter, SPECS[chapter].way({}), frameworks
    return sorted(int(path.name) for path in folders if device_counts(path, *whose))


def records_of(
    folder: Path, seed: int, chapter: str, frameworks: Sequence[str], devices: int
) -> list[Record]:
    """One seed's record of every framework. Raises RequestError about the first that is wrong."""
    found = gather(
        folder / str(seed),
        chapter,
        SPECS[chapter].way({}),
        frameworks,
        [devices],
        lambda config: {} if config.seed == seed else {"seed": seed},
    )
    for each in found:
        if each.run is None:
            raise RequestError(f"seed {seed}, {each.framework}: {each.trouble}; `nox -s seeds`")
    return [each.run.record for each in found if each.run]


def require_one_setting(folder: Path, seeds: Sequence[int], records: Sequence[Record]) -> None:
    """Raises RequestError if the seeds differ in more than the seed; one record speaks for each."""
    first, *others = (identity(each) | {"preset": each.config.preset} for each in records)
    for seed, other in zip(seeds[1:], others, strict=True):
        for key, value in other.items():
            if value != first[key] and key not in {"seed", "initial weights"}:
                raise RequestError(
                    f"in {folder}, {key} is {first[key]} for seed {seeds[0]} and {value} for seed "
                    f"{seed}: run `nox -s seeds` again"
                )


def statistics(figures: Array, frameworks: Sequence[str]) -> dict[str, Any]:
    """The fields of a spread that follow from accuracies (seeds, frameworks)."""
    deviations = figures.std(axis=0, ddof=1)
    return {
        "frameworks": [
            FrameworkSpread(
                framework=name,
                accuracies=column.tolist(),
                mean=column.mean(),
                deviation=deviation,
                least=column.min(),
                most=column.max(),
            )
            for name, column, deviation in zip(frameworks, figures.T, deviations, strict=True)
        ],
        "differences": [
            Difference(
                first=frameworks[i],
                second=frameworks[j],
                mean=above.mean(),
                deviation=above.std(ddof=1),
                error=above.std(ddof=1) / len(above) ** 0.5,
            )
            for i, j in combinations(range(len(frameworks)), 2)
            for above in [figures[:, i] - figures[:, j]]
        ],
        "over_seeds": float(np.sqrt(figures.var(axis=0, ddof=1).mean())),
        "over_frameworks": float(np.sqrt(figures.var(axis=1, ddof=1).mean())),
        "test": permutation_test(figures),
    }
