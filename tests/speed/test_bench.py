"""The benchmark: its arithmetic, its ratios and what it does with a measurement that fails."""

import importlib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benches import CONTENDER, DATA, MACHINE, bench_of, fake_python
from started import children

from bench.__main__ import main
from bench.busy import busy
from bench.measure import Measurement
from bench.plan import FABRIC, WORKLOADS, Entry, entries
from bench.report import markdown
from bench.results import Bench
from bench.targets import ON_GPUS, TARGETS, targets
from common.backends.frameworks import FRAMEWORKS
from common.data.dataset import Bytes, Dataset
from common.data.synthetic import synthetic
from common.models.nets import LENET, resnet18_shapes


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


def test_each_rival_has_its_own_target() -> None:
    speeds = {("ours", 1): 600.0, ("ours", 2): 450.0, ("keras", 1): 800.0}
    speeds |= {("d2l", 1): 400.0, ("fabric", 2): 500.0}
    found = [
        (Entry("pytorch", "scratch", *contender), CONTENDER | {"images_per_second": speed})
        for contender, speed in speeds.items()
    ]
    bench = bench_of(*found)
    assert cell(bench, "LeNet: images/s over its", "pytorch") == "0.75 ✗"
    assert cell(bench, "LeNet: images/s over Fabric's", "pytorch") == "0.90 ✗"
    assert cell(bench, "LeNet: images/s over the d2l", "pytorch") == "1.50 ✗"


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
def test_everything_compared_is_measured_once(gpus: int) -> None:
    everything = entries(FRAMEWORKS, tuple(WORKLOADS), gpus)
    assert len({entry.key() for entry in everything}) == len(everything)
    assert {entry.kind for entry in everything} == {"gpu" if gpus else "cpu"}
    assert {each.devices for each in everything if each.contender == "ours"} == {1, gpus or 2}
    bench = bench_of(*((each, CONTENDER if each.chapter else MACHINE) for each in everything))
    assert targets(bench) == (ON_GPUS if gpus else TARGETS)
    empty = {
        (target.what.partition(": ")[2].partition(",")[0], name)
        for target in targets(bench)
        for name in FRAMEWORKS
        if not target.cell(bench, name)
    }
    assert empty == {("images/s over Fabric's", x) for x in {*FRAMEWORKS} - {*FABRIC.contenders}}
    concise = [each.workload for each in everything if gpus and each.chapter == "concise"]
    assert all(each.examples == 25 * each.batch_size <= 60_000 for each in concise)


def test_every_rival_has_a_module() -> None:
    rivals = [entry for entry in entries(FRAMEWORKS, tuple(WORKLOADS)) if entry.chapter]
    modules = {entry.module() for entry in rivals if not entry.ours}
    assert all(importlib.util.find_spec(module) for module in modules)


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


class Noted:
    """A contender that notes how many examples each minibatch of a pass has."""

    def __init__(self) -> None:
        self.passes = list[list[int]]()

    def prepare(self, images: Bytes, labels: Bytes) -> list[int]:
        return [len(images[start : start + 256]) for start in range(0, len(images), 256)]

    def train(self, data: list[int]) -> None:
        self.passes.append(data)


@pytest.mark.parametrize("count", [600, 768])
def test_every_shape_is_compiled_before_the_clock_starts(count: int) -> None:
    noted, data = Noted(), Dataset("synthetic", *synthetic(count, 1))
    figures = Measurement(Entry("jax", "scratch", "keras", 1), data, 0.0).figures(noted)
    *before, timed = noted.passes
    assert {shape for each in before for shape in each} == set(timed)
    assert sum(timed) == count
    assert figures["images_per_second"] > 0


def flags(folder: Path, *more: str, most: int = 99) -> list[str]:
    """Two rounds of LeNet in JAX, measured by a Python that makes up the first `most` answers."""
    rest = [f"--out={folder}", "--rounds=2", "--chapters=scratch"]
    return [fake_python(folder, most), *rest, *more]


def left(folder: Path) -> Bench:
    return Bench.model_validate_json((folder / "bench.json").read_text())


def rounds_of(bench: Bench) -> list[int]:
    return [len(values) for each in bench.samples for values in [*each.figures.values()][:1]]


@pytest.mark.parametrize("beside", [0, 2])
def test_it_writes_what_it_measured_and_beside_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], beside: int
) -> None:
    assert main(flags(tmp_path, *([f"--beside={beside}"] if beside else []))) == 0
    bench = left(tmp_path)
    assert (bench.rounds, bench.beside, rounds_of(bench)) == (2, beside, [2] * 5)
    assert bench.data == DATA
    page = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert page == markdown(bench)
    printed = capsys.readouterr().out
    assert "LeNet: 2 devices" in printed
    for text in (page.splitlines()[0], page.splitlines()[2], printed.splitlines()[-1]):
        assert (" beside 2 busy processes" in text) == ("busy" in text) == bool(beside)


def test_as_many_as_asked_for_are_busy_meanwhile() -> None:
    before = set(children(os.getpid()))
    with busy(2):
        assert len(set(children(os.getpid())) - before) == 2
    assert set(children(os.getpid())) == before


def test_where_cpus_are_timed_rivals_see_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr("bench.__main__.gpus_here", lambda: {"gpus": "two", "driver": "1.2"})
    assert main(flags(tmp_path, "--rounds=1")) == 0
    assert main(flags(tmp_path, "--rounds=1", "--gpus=2")) == 0
    told = (tmp_path / "told").read_text().splitlines()
    contenders = [("ours", 1), ("ours", 2), ("keras", 1)]
    on_cpus = [f"-1 jax scratch {each} {k} --kind=cpu" for each, k in [*contenders, ("d2l", 1)]]
    on_gpus = [f"0,1 jax scratch {each} {k} --kind=gpu" for each, k in contenders]
    assert told == [*on_cpus, "-1 jax none machine 1 --kind=cpu", *on_gpus]
    page = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert "float32 without TF32; two, driver 1.2" in page
    assert "| LeNet | jax | ours | 2 GPUs |" in page


def test_rounds_that_are_done_are_kept(tmp_path: Path) -> None:
    assert main(flags(tmp_path, most=7)) == 1
    assert (left(tmp_path).rounds, rounds_of(left(tmp_path))) == (1, [1] * 5)


def test_where_all_fail_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text("of an earlier run")
    assert main(flags(tmp_path, most=0)) == 1
    said = capsys.readouterr().err
    assert "\npython -m bench: error: jax scratch ours 1 cpu failed" in said
    assert (tmp_path / "bench.json").read_text() == "of an earlier run"


def test_one_that_fails_costs_the_others_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, asked = tmp_path / "python", flags(tmp_path)
    python.write_text(python.read_text().replace("exit(", "exit('keras' in sys.argv or "))
    assert main(asked) == 1
    assert ": jax scratch keras 1 cpu failed" in (said := capsys.readouterr().err)
    bench = left(tmp_path)
    assert [each.contender for each in bench.samples] == ["ours", "ours", "d2l", "machine"]
    assert rounds_of(bench) == [2] * 4
    page = (tmp_path / "bench.md").read_text(encoding="utf-8")
    assert f"**failed**: {', '.join(bench.failed)}" in page
    assert "error: 1 of 5 could not be timed, see above" in said


def test_a_python_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--python=jax=/no/such/python"])
    assert ended.value.code == 2
    assert "'jax=/no/such/python' names no framework and its Python" in capsys.readouterr().err
