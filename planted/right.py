"""Right runs with many seeds, in float32, of which the comparison must accuse none.

python -m planted.right jax --seeds 20
"""

if __name__ == "__main__":
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning
    from common.base.machine import keep_memory

    keep_memory()

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.backends.interface import Process
from common.base.errors import RequestError
from common.chapters.suites import SUITES, Suite
from common.compare.findings import Check
from common.compare.folder import examine
from common.grid import get_ready
from common.report.text import describe
from common.terminal.command import REPEATS, Parser, count, path, seed as first_seed, status
from common.training.run import Run
from planted.run import KNOWN, Task, make

DATA: Final = "fashion-mnist", "synthetic"
SPLIT: Final = "data", "pipeline", "tensor", "zero1", "zero2", "zero3"
"""The strategies; each seed has the next one."""


@dataclass(frozen=True)
class ManySeeds(Run):
    """A run that trains with one seed after the other, each in a folder of its own."""

    seeds: Sequence[int] = ()

    def __call__(self, process: Process) -> None:
        for seed in self.seeds:
            config = self.config.model_copy(update={"seed": seed})
            files = replace(self.files, out=Path(str(self.files.out).replace("SEED", str(seed))))
            Run.__call__(replace(self, config=config, files=files), process)


def short_runs(seeds: Iterable[int]) -> list[Task]:
    """The runs of a few steps, on 1, 2 and 3 devices; those of a task in one process."""
    tasks: dict[tuple[str, int], list[int]] = {}
    nets = "scratch float32", "concise float32-per-device", "concise float32-sync"
    for seed in seeds:
        split = f"strategies float64-{SPLIT[seed % len(SPLIT)]}"
        alone = "strategies float64-data", 1
        for task in (*product(nets, (1, 2, 3)), alone, *product([split], (2, 3))):
            tasks.setdefault(task, []).append(seed)
    return [(partial(ManySeeds, seeds=some), *task) for task, some in tasks.items()]


def quick_devices(suite: Suite) -> tuple[int, ...]:
    """The numbers of devices of a quick preset: only two of ResNet-18, which trains longest."""
    return {"concise quick": (2,), "scratch quick": (1, 2)}.get(f"{suite.chapter} {suite.name}", ())


def checks_of(folder: Path, **chosen: Any) -> list[Check]:
    """The checks of runs, which are chosen as by `examine`."""
    results = examine(folder, **chosen)
    return [check for result in results for check in result.comparison.checks]


def short(framework: str, seeds: Sequence[int]) -> Iterator[tuple[str, list[Check]]]:
    """The checks of the short runs of each seed, on each data set, but for the lack of others."""
    for dataset in DATA:
        with TemporaryDirectory(prefix="right-") as name:
            how = {"dataset": dataset, "dtype": "float32"}
            make(framework, f"{name}/SEED", short_runs(seeds), **how)
            for seed in seeds:
                checks = checks_of(Path(name) / str(seed), frameworks=[framework])
                yield f"seed {seed}, {dataset}", [x for x in checks if x.check != "peers"]


def quick(folder: Path) -> Iterator[tuple[str, list[Check]]]:
    """The checks of all frameworks' runs of the quick presets; right ones are removed."""
    for each in sorted(folder.glob("*/[0-9]*")):
        seed = {"seed": int(each.name)}
        suites = [replace(x, settings={**x.settings, **seed}) for x in SUITES if x.name == "quick"]
        checks = checks_of(each, known=suites, planned=quick_devices)  # which have another seed
        yield f"seed {each.name}, {each.parent.name}", checks
        if all(check.passed for check in checks):
            rmtree(each)


def told(answers: Iterable[tuple[str, list[Check]]]) -> int:
    """Prints every red check, and the counts. Returns 1 if any is red, else 0."""
    runs, checks, red = 0, 0, 0
    for where, found in answers:
        runs += len({(x.framework, x.chapter, x.suite, x.devices) for x in found})
        checks += len(found)
        for check in found:
            if not check.passed:
                red += 1
                print(f"{where}: {describe(check)}", flush=True)
    print(f"{red} of {checks} checks red, in {runs} runs without a bug", flush=True)
    return int(red > 0)


def parser() -> Parser:
    command = Parser("python -m planted.right", __doc__)
    add = command.add_argument
    who = "make its runs, and compare the short ones (compare the quick presets' runs in DIR)"
    add("framework", nargs="?", choices=FRAMEWORKS, help=who)
    add("--seeds", type=count(REPEATS), default=20, metavar="N", help="(%(default)s)")
    add("--first", type=first_seed, default=0, metavar="SEED", help="(%(default)s)")
    quick = "also make N seeds' runs of the quick presets, in DIR (%(default)s)"
    add("--quick", type=count(REPEATS, least=0), default=0, metavar="N", help=quick)
    folder = Path("results/right")
    add("--out", type=path, default=folder, metavar="DIR", help="(%(default)s)")
    return command


def run(flags: argparse.Namespace) -> int:
    """Does what the flags say. Returns 0, or 1 if a run is red."""
    if not flags.framework:
        if not any(flags.out.glob("*/[0-9]*")):
            raise RequestError(f"there are no runs in {flags.out}: `nox -s right` makes them")
        return told(quick(flags.out))
    get_ready(flags.framework)
    for dataset in DATA if flags.quick else ():
        kind = partial(ManySeeds, seeds=range(flags.first, flags.first + flags.quick))
        tasks = [(kind, x, k) for x, suite in KNOWN.items() for k in quick_devices(suite)]
        make(flags.framework, f"{flags.out / dataset}/SEED", tasks, dataset=dataset)
    return told(short(flags.framework, range(flags.first, flags.first + flags.seeds)))


def main(argv: Sequence[str] | None = None) -> int:
    """Makes right runs. Returns 0, 1 if one is red, 2, 130 or 143."""
    command = parser()
    return status(command.prog, lambda: run(command.parse_args(argv)))


if __name__ == "__main__":
    raise SystemExit(main())
