"""Tells how much of an accuracy is chance: its spread over seeds and frameworks.

python -m common.seeds results/seeds

At one seed all frameworks start from the same weights and see the same minibatches, so
accuracies are compared seed by seed. `nox -s seeds` makes the runs.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.base.errors import RequestError
from common.chapters.spec import CHAPTERS, spec
from common.compare.collect import gather
from common.compare.runs import final_accuracy, identity
from common.records.record import Record
from common.terminal.command import REPEATS, Parser, count, path, status
from common.terminal.tables import markdown


def records(folder: Path, chapter: str, frameworks: Sequence[str], seed: int) -> list[Record]:
    """One seed's record of every framework. Raises RequestError if one is wrong."""
    where = folder / str(seed), chapter, spec(chapter).way({}), frameworks, [1]
    loaded = gather(*where)
    for entry in loaded:
        if entry.trouble:
            raise RequestError(f"seed {seed}, {entry.framework}: {entry.trouble}")
    runs = [entry.record for entry in loaded if entry.record]
    if any(run.config.seed != seed for run in runs):
        raise RequestError(f"the records in {where[0]} are not of seed {seed}")
    return runs


def p_value(figures: Array) -> tuple[float, int]:
    """How often means are as far apart as those of `figures` (seeds, frameworks), or more.

    Also returns the number of permutations: all of the frameworks within each seed, or
    20,000 of them. Raises RequestError without SciPy.
    """
    try:
        from scipy.stats import permutation_test
    except ModuleNotFoundError:
        raise RequestError("SciPy is not installed: run `nox -s seeds`") from None
    result = permutation_test(
        figures.T,
        lambda *columns, axis: np.var([x.mean(axis=axis) for x in columns], axis=0),
        permutation_type="samples",
        alternative="greater",
        n_resamples=20_000,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue), len(result.null_distribution)


def report(figures: Array, frameworks: Sequence[str]) -> str:
    """What accuracies (seeds, frameworks) say, in Markdown. Deviations are over n - 1."""
    rows = [
        [name, *(f"{x:.4f}" for x in (runs.mean(), runs.std(ddof=1), runs.min(), runs.max()))]
        for name, runs in zip(frameworks, figures.T, strict=True)
    ]
    table = "\n".join(markdown(["framework", "mean", "deviation", "least", "most"], rows))
    # Each spread is the root of a mean variance, over seeds and over frameworks.
    spreads = [np.sqrt(figures.var(axis=axis, ddof=1).mean()) for axis in (0, 1)]
    p, permutations = p_value(figures)
    return f"""{table}

Standard deviation of one framework over the seeds: {spreads[0]:.4f}; of the
frameworks at one seed: {spreads[1]:.4f}.
Null hypothesis: it makes no difference which framework ran:
p = {p:.3g} ({permutations:,} permutations of the frameworks within each seed).
A small p speaks against it; a large one does not prove it."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = Parser("python -m common.seeds", __doc__)
    add, seeds = parser.add_argument, count(REPEATS, least=2)
    add("folder", type=path, metavar="DIR", help="has a folder for each seed: 0, 1, 2, ...")
    add("--chapter", choices=CHAPTERS, default=CHAPTERS[0], help="whose runs (%(default)s)")
    add("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS, help="only these")
    add("--seeds", type=seeds, metavar="N", default=5, help="how many, from 0 (%(default)s)")
    flags = parser.parse_args(argv)
    frameworks = list(dict.fromkeys(flags.frameworks))
    if len(frameworks) < 2:
        raise RequestError("a spread needs two frameworks: name another --frameworks")
    where = flags.folder, flags.chapter, frameworks
    runs = [records(*where, seed) for seed in range(flags.seeds)]
    settings = [identity(row[0]) | {"seed": 0, "initial weights": ""} for row in runs]
    if any(setting != settings[0] for setting in settings):
        raise RequestError("the seeds are of several settings: run `nox -s seeds`")
    config = runs[0][0].config
    data = f"{config.train_examples:,} {config.dataset} images; seeds 0 to {flags.seeds - 1}"
    accuracies = f"accuracy on {config.test_examples:,} images"
    print(f"{flags.chapter}, preset {config.preset}, {data}; {accuracies}\n")
    figures = [[final_accuracy(run) for run in row] for row in runs]
    print(report(np.array(figures), frameworks))


if __name__ == "__main__":
    raise SystemExit(status("python -m common.seeds", main))
