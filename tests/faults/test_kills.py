"""A run that is killed at random moments and resumed ends with the same bits."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from signal import SIGKILL

import pytest
from killed_runs import Case, Runner
from started import SECONDS, descendants, require_gone

from common.backends.frameworks import FRAMEWORKS, WRAPPERS
from common.chapters.concise import BATCH_NORMS
from common.chapters.scratch import ALLREDUCES
from common.chapters.strategies import SCHEDULES, StrategiesOptions
from common.parallel.strategies import OF_ANY_NET

pytestmark = pytest.mark.faults


def cases(framework: str) -> Iterator[Case]:
    """Every allreduce on 3 devices, the book's also on 1 and 2; every wrapper.

    And all strategies, hand-written and native, on 3.
    """
    yield from (Case("scratch", 3, (f"--allreduce={name}",)) for name in ALLREDUCES)
    yield from (Case("scratch", devices, ("--allreduce=star",)) for devices in (1, 2))
    wrappers = [name for name in WRAPPERS[framework] if name != "dp"]  # which needs GPUs
    for wrapper, mode, devices in product(wrappers, BATCH_NORMS, (1, 2, 3)):
        options = (f"--batch-norm={mode}", f"--wrapper={wrapper}", "--width=4")
        yield Case("concise", devices, options)
    for name in OF_ANY_NET:
        split = f"--strategy={name}", "--microbatches=2"
        yield Case("strategies", 3, split, name)
        for order in SCHEDULES:  # natively, a framework has few of them
            if not StrategiesOptions(name, schedule=order).no_native(framework):
                of_pipeline = (f"--schedule={order}",) if name == "pipeline" else ()
                native = (*split, "--native", *of_pipeline)
                yield Case("strategies", 3, native, f"native-{name}")
                break


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    framework = metafunc.config.getoption("--framework") or FRAMEWORKS[0]
    chosen = list(cases(framework))
    if metafunc.config.getoption("--short"):  # on 3 devices, and in 3 processes
        chosen = [Case("scratch", 3, ())]
        if framework == "pytorch":
            chosen.append(Case("concise", 3, ("--wrapper=ddp", "--width=4")))
    metafunc.parametrize("case", chosen, ids=str)


def finish(runner: Runner, name: str, *flags: str) -> float:
    """The seconds of a whole run."""
    begun = time.monotonic()
    run = runner.start(name, *flags)
    _, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 0, err
    return time.monotonic() - begun


def kill(runner: Runner, name: str, seconds: float, *, later: bool) -> bool:
    """Starts a run and kills it after so many seconds; whether it was still running.

    `later`: the seconds count from when it has written a checkpoint.
    """
    before = runner.newest(name)
    run = runner.start(name, "--resume")
    while later and run.poll() is None and runner.newest(name) == before:
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        run.wait(timeout=seconds)
    processes = [run.pid, *descendants(run.pid)]
    run.send_signal(SIGKILL)
    _, err = run.communicate()
    assert run.returncode in (0, -SIGKILL), err
    require_gone(processes)
    return run.returncode == -SIGKILL


def test_a_killed_run_ends_with_the_same_bits(
    framework: str, case: Case, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    runner = Runner(framework, case, tmp_path)
    life = finish(runner, "whole")
    training = sum(epoch.seconds for epoch in runner.record("whole").epochs[1:])
    moments = random.Random(f"{framework} {case}")
    done = 0
    while done < pytestconfig.getoption("--kills"):
        # Most of so short a run passes before it trains. The first kill comes later, so that all
        # others, and the end, have a checkpoint to resume from.
        later = not runner.newest("killed")
        if kill(runner, "killed", moments.uniform(0, training if later else life), later=later):
            done += 1
        else:
            runner.require_same("whole", "killed")
            shutil.rmtree(tmp_path / "killed")
    left = runner.newest("killed")
    finish(runner, "killed", "--resume")
    ended = runner.record("killed")
    assert left > 0
    # Where nothing was left to do, the record is as its run has begun it.
    assert left in (len(ended.losses), *(resumption.step for resumption in ended.resumed[-1:]))
    runner.require_same("whole", "killed")
