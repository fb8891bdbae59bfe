"""Suites whose runs rest on others."""

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import agreement
import numpy as np
import pytest
from agreement import edit, failed, make, rewrite
from numpy_chapter import NumpyChapter, OnGpus

from common.backends.frameworks import FRAMEWORKS
from common.chapters.spec import CHAPTERS, Settings, spec
from common.chapters.strategies import NETS, WITH_EXPERTS, StrategiesOptions
from common.chapters.suites import SUITES, Suite, on_gpus
from common.compare.comparison import verdict_on
from common.compare.findings import Verdict
from common.compare.folder import only_in_grid
from common.compare.numpy_nets import Step
from common.compare.runs import follows_preset
from common.grid import runs
from common.parallel.strategies.context import EXCHANGES
from common.records.record import read_record, read_tensors
from common.records.trace import traced_steps
from common.report.text import conclusion
from common.settings.arguments import all_settings
from common.settings.config import Config

SIZES: Settings = {"batch_size": 4, "steps": 2, "train_examples": 7, "test_examples": 5}
SETTINGS: Settings = {**SIZES, "seed": 0, "lr": 0.2, "dtype": "float64"}
RING: Settings = {**SETTINGS, "allreduce": "ring"}
WHY = "it has no ring"
FOR_ALL = Suite("scratch", "float64", "float64", (1, 2), (3,), SETTINGS)
FOR_SOME = Suite(
    *("scratch", "float64-own", "own", (2,), (), RING), alone_in="float64", lacking={"mxnet": WHY}
)
(ON_GPUS,) = on_gpus([FOR_ALL])
KNOWN = FOR_ALL, FOR_SOME, ON_GPUS
WITH_GPU = FRAMEWORKS[:3]


class Rounds(OnGpus):
    """GPUs whose gradients are off by a millionth, as float32 would have it."""

    def step(self, *args: Any) -> Step:
        found = super().step(*args)
        off = {name: values * (1 + 1e-6) for name, values in found.gradients.items()}
        return replace(found, gradients=off)


def run(folder: Path, suite: Suite, framework: str, devices: int, backend: Any = None) -> Path:
    """Makes a run of a suite."""
    place = folder / suite.folder
    place.mkdir(parents=True, exist_ok=True)
    settings = {**suite.settings, "device_kind": suite.kind, "init_weights": None}
    default = OnGpus() if suite.kind == "gpu" else NumpyChapter()
    return make(place, framework, backend or default, devices, **settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Runs of all three suites."""
    for framework, devices in product(FRAMEWORKS, (1, 2)):
        run(tmp_path, FOR_ALL, framework, devices)
        if framework in WITH_GPU:
            run(tmp_path, ON_GPUS, framework, devices)
    for framework in WITH_GPU:
        run(tmp_path, FOR_SOME, framework, 2)
    return tmp_path


def judge(folder: Path, **chosen: Any) -> Verdict:
    """The verdict on these suites in place of the project's."""
    return agreement.judge(folder, **{"known": KNOWN, **chosen})


def judged(folder: Path, **extent: Any) -> Verdict:
    """The verdict on what is planned, GPUs included."""
    planned = partial(Suite.counts, **{"gpus": 2, **extent})
    return judge(folder, planned=planned, without_gpu=["mxnet"])


def wrong(verdict: Verdict) -> set[tuple[str, str, int, str]]:
    return {(each.check, each.framework, each.devices, each.note) for each in verdict.failures}


def test_what_some_lack_is_not_missed(folder: Path) -> None:
    (folder / "own/mxnet-scratch-1dev.json").write_text("no record")  # which is left out
    verdict = judge(folder, planned=Suite.counts)
    assert verdict.passed
    for_all, for_some = verdict.comparisons
    assert (for_all.lacking, for_some.lacking) == ({}, {"mxnet": WHY})
    assert {check.framework for check in for_some.checks} == {*WITH_GPU}
    assert "devices" in {check.check for check in for_some.checks}


def test_a_suite_needs_its_runs_and_those_on_one_device_elsewhere(folder: Path) -> None:
    both: dict[str, Any] = {"frameworks": ["jax", "mxnet"]}
    only = {**both, "planned": Suite.counts}
    assert judge(folder, **only).passed
    # Whatever is there is compared: the ring plans no run on one device, and misses none.
    everything: dict[str, Any] = {**both, "without_gpu": ["mxnet"]}
    whole = judge(folder, **everything)
    assert failed(whole) == set()
    (folder / "float64/jax-scratch-1dev.json").unlink()
    missed = ("devices", "jax", 2)
    for chosen in (only, everything):
        assert {("record", "jax", 1), missed} <= failed(judge(folder, **chosen))
    (folder / "own/jax-scratch-2dev.json").unlink()
    assert ("record", "jax", 2) in failed(judge(folder, **only))


def test_gpus_are_compared_with_as_many_cpu_devices(folder: Path) -> None:
    verdict = judged(folder)
    assert verdict.passed
    cpu, _, gpu = verdict.comparisons
    assert "gpus" not in {each.check for each in cpu.checks}
    compared = {(each.framework, each.devices) for each in gpu.checks if each.check == "gpus"}
    assert compared == {*product(WITH_GPU, (1, 2))}
    said = conclusion(verdict)
    assert "; on GPUs, pytorch, tensorflow and jax agree; not compared: mxnet" in said
    missed = {each[:3] for each in wrong(judged(folder, gpus=3, more_devices=True))}
    assert {("record", framework, 3) for framework in WITH_GPU} <= missed
    (folder / "float64/jax-scratch-2dev.json").unlink()
    note = "there is no run on as many CPU devices to compare with"
    assert ("gpus", "jax", 2, note) in wrong(judged(folder))


def test_a_resumed_run_has_the_bits_of_the_straight_one(
    folder: Path,
) -> None:
    asked = {**SETTINGS, "checkpoint_every": 1}
    again = Suite(
        "scratch", "resumed", "resumed", (2,), (), asked, repeats="float64", alone_in="float64"
    )
    (folder / "resumed").mkdir()
    path = run(folder, replace(again, settings=SETTINGS), "jax", 2)
    chosen: dict[str, Any] = {"frameworks": ["jax"], "planned": Suite.counts}
    chosen["known"] = FOR_ALL, again
    trouble = "resumed", "jax", 2
    assert wrong(judge(folder, **chosen)) == {(*trouble, "it was not resumed")}
    resumption = {"step": 1, "started": "2030", "framework": "jax", "devices": 2}
    edit(path, resumed=[resumption])
    assert judge(folder, **chosen).passed
    weights = read_tensors(path, read_record(path))["weights/fc2.bias"]
    rewrite(path, {"weights/fc2.bias": weights * (1 + 1e-15)})
    (check,) = judge(folder, **chosen).failures
    assert (check.check, check.why) == ("resumed", "weights/fc2.bias has other bits")
    # Without a straight run, it is compared with NumPy's steps.
    straight = {**chosen, "known": [FOR_ALL, replace(again, repeats="")]}
    assert judge(folder, **straight).passed
    (folder / "float64/jax-scratch-2dev.json").unlink()
    assert (*trouble, "there is no straight run to compare with") in wrong(judge(folder, **chosen))


def test_what_ran_on_cpus_does_not_pass_for_gpus(folder: Path) -> None:
    run(folder, replace(ON_GPUS, kind="cpu"), "jax", 2)
    note = "device_kind is cpu, and the suite asks for gpu"
    assert ("record", "jax", 2, note) in wrong(judged(folder))
    note = "it ran on the CPU, and the suite asks for GPUs"
    assert ("gpus", "jax", 2, note) in wrong(judge(folder, chapters=["scratch"]))


def test_gpus_that_round_as_float32_are_compared_with_cpus(folder: Path) -> None:
    for framework, devices in product(WITH_GPU, (1, 2)):  # they agree with each other
        run(folder, ON_GPUS, framework, devices, Rounds())
    found = judged(folder).failures
    for check in ("gpus", "gradient"):
        far = {(each.framework, each.devices): each for each in found if each.check == check}
        assert far.keys() == {*product(WITH_GPU, (1, 2))}
        distances = [each.distance or 0 for each in far.values()]
        assert np.isclose(distances, 1e-6, rtol=4 if check == "gpus" else 0.5).all()


def test_a_preset_has_its_accuracy_on_any_device_and_however_it_is_split() -> None:
    for follows, chapter, kind, settings in (
        (True, "scratch", "gpu", {"deterministic": True}),
        (False, "scratch", "gpu", {"tf32": True}),
        (True, "strategies", "cpu", {"net": "gpt", "strategy": "tensor"}),
        (True, "strategies", "cpu", {"net": "gpt", "strategy": "context", "attention": "gather"}),
        (False, "strategies", "cpu", {"net": "gpt", "strategy": "tensor", "depth": 1}),
    ):
        given = all_settings("jax", chapter, {"preset": "quick", **settings})
        assert follows_preset(Config.of(given, 2, kind)) == follows


def test_a_run_of_a_user_is_compared_however_it_is_split() -> None:
    known = {spec(x.chapter).way(x.settings) for x in SUITES if x.folder == "."}
    flags = product(NETS, WITH_EXPERTS, EXCHANGES, (False, True), (False, True))
    for net, strategy, exchange, contiguous, sequence in flags:
        options = StrategiesOptions(
            strategy, net=net, attention=exchange, contiguous=contiguous, sequence_parallel=sequence
        )
        assert options.refusal(1) or options.way() in known


def test_every_suite_is_run_by_plain_nox_or_left_to_the_grid_and_said_so() -> None:
    plain, added = (
        {
            str(given["out"])
            for framework in FRAMEWORKS
            for _, given in runs(framework, Path(), more_devices=more)
        }
        for more in (False, True)
    )
    left = only_in_grid(CHAPTERS)
    named = {each.folder for each in SUITES if f"{each.chapter} {each.name}" in left}
    assert added - plain == named
    assert verdict_on([], left).model_dump()["not_run"] == left


def test_momentum_is_seen_after_the_end_of_an_epoch() -> None:
    for suite in SUITES:
        if suite.chapter == "strategies" and "steps" in suite.settings:
            sizes: Any = suite.settings
            assert (sizes["steps"] - 1) * sizes["batch_size"] >= sizes["train_examples"], suite.name


def test_every_step_of_a_short_suite_is_kept() -> None:
    """In float32 runs are not compared after their first step, as each step is."""
    for suite in SUITES:
        if "preset" in suite.settings:
            continue
        counts = *suite.devices, *suite.more_devices
        for framework, devices in product(FRAMEWORKS, counts):
            if framework in suite.lacking:
                continue
            given = all_settings(framework, suite.chapter, suite.settings)
            config = Config.of(given, devices, "cpu")
            assert traced_steps(config) == [*range(1, config.number_of_steps() + 1)]
