"""The benchmark: its arithmetic, its ratios and what it does with a measurement that fails."""

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benches import CONTENDER, DATA, MACHINE, bench_of, fake_python

from bench import plan
from bench.__main__ import main
from bench.plan import FABRIC, WORKLOADS, Entry, entries
from bench.report import markdown
from bench.results import Bench
from bench.targets import TARGETS
from common.backends.frameworks import FRAMEWORKS
from common.models.nets import LENET, resnet18_shapes
from common.report.benchmark import Samples


def cell(bench: Bench, what: str, framework: str) -> str:
    (target,) = (target for target in TARGETS if target.what.startswith(what))
    return target.cell(bench, framework)


def test_ratios_are_taken_within_a_round() -> None:
    ours, rival = Entry("jax", "scratch", "ours", 1), Entry("jax", "scratch", "keras", 1)
    rounds = [(100.0, 50.0), (10.0, 10.0), (30.0, 6.0)]  # of the medians it would be 3
    found = [
        (entry, CONTENDER | {"images_per_second": value})
        for pair in rounds
        for entry, value in zip((ours, rival), pair, strict=True)
    ]
    assert cell(bench_of(*found), "LeNet: images/s over its", "jax") == "2.00 ✓"


def test_targets_that_are_missed_say_so() -> None:
    one, two = (Entry("jax", "scratch", "ours", devices) for devices in (1, 2))
    machine = Entry("jax", "", "machine", 1)
    bench = bench_of((one, CONTENDER), (two, CONTENDER | {"epoch": 12.0}), (machine, MACHINE))
    assert cell(bench, "LeNet: 2 devices", "jax") == "1.20 ✗"
    assert cell(bench, "LeNet: share", "jax") == "0.80 ✓"
    assert cell(bench, "LeNet: first step", "jax") == "0.67 ✓"
    assert cell(bench, "ResNet-18: 2 devices", "jax") == ""
    assert cell(bench, "LeNet: 2 devices", "mxnet") == ""


def test_everything_compared_is_measured() -> None:
    everything = entries(FRAMEWORKS, tuple(WORKLOADS))
    bench = bench_of(*((each, CONTENDER if each.chapter else MACHINE) for each in everything))
    empty = {
        (target.what.partition(": ")[2], name)
        for target in TARGETS
        for name in FRAMEWORKS
        if not target.cell(bench, name)
    }
    others = set(FRAMEWORKS) - set(FABRIC.contenders)
    assert empty == {("images/s over Fabric's, 2 devices", name) for name in others}


@pytest.mark.parametrize("gpus", [0, 2])
def test_nothing_is_measured_twice(gpus: int) -> None:
    keys = [entry.key() for entry in entries(FRAMEWORKS, tuple(WORKLOADS), gpus)]
    assert len(set(keys)) == len(keys)


def test_every_rival_has_a_module() -> None:
    rivals = [entry for entry in entries(FRAMEWORKS, tuple(WORKLOADS)) if entry.contender != "ours"]
    modules = {entry.module() for entry in rivals if entry.chapter}
    files = {f"bench.{path.stem}" for path in Path(plan.__file__).parent.glob("*.py")}
    assert {f"bench.d2l_{framework}" for framework in FRAMEWORKS} < modules <= files


def test_each_rival_has_its_own_target() -> None:
    speeds = {("ours", 1): 600.0, ("ours", 2): 450.0, ("keras", 1): 800.0}
    speeds |= {("d2l", 1): 400.0, ("fabric", 2): 500.0}
    found = [
        (Entry("pytorch", chapter, *contender), CONTENDER | {"images_per_second": speed})
        for contender, speed in speeds.items()
        for chapter in WORKLOADS
    ]
    bench = bench_of(*found)
    for title in ("LeNet", "ResNet-18"):
        assert cell(bench, f"{title}: images/s over its", "pytorch") == "0.75 ✗"
        assert cell(bench, f"{title}: images/s over Fabric's", "pytorch") == "0.90 ✗"
    assert cell(bench, "LeNet: images/s over the d2l", "pytorch") == "1.50 ✗"
    assert cell(bench, "ResNet-18: images/s over the d2l", "pytorch") == "1.50 ✓"


@pytest.mark.only("pytorch", "tensorflow", "mxnet")
def test_rivals_train_the_same_nets(framework: str, all_devices: Sequence[Any]) -> None:
    """Devices come first: TensorFlow cannot change their number once a net is built."""
    sizes = [sum(map(math.prod, shapes.values())) for shapes in (LENET, resnet18_shapes(4))]
    if framework == "pytorch":
        torch_nets = importlib.import_module("bench.torch_nets")
        nets = [torch_nets.lenet().state_dict(), torch_nets.resnet18(4).state_dict()]
        counted = [{k: v for k, v in net.items() if "num_batches" not in k} for net in nets]
        found = [sum(math.prod(values.shape) for values in net.values()) for net in counted]
    elif framework == "tensorflow":
        keras_fit = importlib.import_module("bench.keras_fit")
        found = [net.count_params() for net in (keras_fit.lenet(), keras_fit.resnet18(4))]
    else:
        mx = importlib.import_module("mxnet")
        estimator_fit = importlib.import_module("bench.estimator_fit")
        found = []
        with mx.util.np_array(False), mx.util.np_shape(False):
            for net in (estimator_fit.lenet(), estimator_fit.resnet18(4)):
                net.initialize()
                net(mx.nd.zeros((1, 1, 28, 28)))
                params = net.collect_params().values()
                found.append(sum(math.prod(param.shape) for param in params))
    assert found == sizes


def rounds_of(samples: Samples) -> int:
    (number,) = {len(values) for values in samples.figures.values()}
    return number


def test_it_writes_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = fake_python(tmp_path), f"--out={tmp_path}", "--rounds=2", "--chapters", "scratch"
    assert main(flags) == 0
    bench = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert (bench.rounds, [rounds_of(each) for each in bench.samples]) == (2, [2] * 5)
    assert bench.data == DATA
    assert (tmp_path / "bench.md").read_text(encoding="utf-8") == markdown(bench)
    assert "LeNet: 2 devices" in capsys.readouterr().out


def test_rounds_that_are_done_are_kept(tmp_path: Path) -> None:
    flags = fake_python(tmp_path, 7), f"--out={tmp_path}", "--rounds=2", "--chapters", "scratch"
    assert main(flags) == 1
    bench = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert (bench.rounds, [rounds_of(each) for each in bench.samples]) == (1, [1] * 5)


@pytest.mark.parametrize("python", ["jax", "jax=", "jax=/no/such/python", "numpy=python3"])
def test_a_python_must_be_named(python: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--python={python}"])
    assert ended.value.code == 2
    assert f"{python!r} names no framework and its Python" in capsys.readouterr().err


def test_where_all_fail_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text("of an earlier run")
    assert main([fake_python(tmp_path, 0), f"--out={tmp_path}"]) == 1
    said = capsys.readouterr().err
    assert "\npython -m bench: error: jax scratch ours 1 cpu failed" in said
    assert (tmp_path / "bench.json").read_text() == "of an earlier run"


@pytest.mark.parametrize("failing", ["keras", "machine", "ours"])
def test_one_that_fails_costs_the_others_nothing(
    failing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    flags = fake_python(tmp_path), f"--out={tmp_path}", "--rounds=2", "--chapters", "scratch"
    python.write_text(python.read_text().replace("exit(", f"exit({failing!r} in sys.argv or "))
    assert main(flags) == 1
    said = capsys.readouterr().err
    assert f": jax {'' if failing == 'machine' else 'scratch'} {failing} 1 cpu failed" in said
    bench = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    contenders = [each for each in ("ours", "ours", "keras", "d2l", "machine") if each != failing]
    assert [each.contender for each in bench.samples] == contenders
    assert {rounds_of(each) for each in bench.samples} == {2}
    assert len(bench.failed) == 5 - len(contenders)
    page = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert f"**failed**: {', '.join(bench.failed)}" in page
    assert f"error: {len(bench.failed)} of 5 could not be timed, see above" in said


def test_where_no_loop_runs_nothing_is_written(tmp_path: Path) -> None:
    python = tmp_path / "python"
    flags = fake_python(tmp_path), f"--out={tmp_path}"
    python.write_text(python.read_text().replace("exit(", "exit('machine' not in sys.argv or "))
    assert main(flags) == 1
    assert not (tmp_path / "bench.json").exists()
