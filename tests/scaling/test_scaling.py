"""`python -m common.scaling`: what it prints and writes, and which requests it refuses."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest
from clocks import HERE, costs, line, scaled

from common.base.errors import RequestError
from common.chapters.scratch import ALLREDUCES
from common.scaling import __main__ as command
from common.scaling.formulas import ITEM, seconds
from common.scaling.results import Compared, Scaling
from common.scaling.simulate import as_measured
from common.scaling.tables import verdict
from common.scaling.training_step import nets

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pydantic", "rich", "matplotlib", "torch", "tensorflow", "jax", "mxnet"}
FLAGS = """--framework --measured --threads --sizes --latency --bandwidth --addition --rate --out
    --quiet --help --launcher --coordinator --hosts --host-rank --join-timeout"""


@pytest.fixture
def scaling() -> Scaling:
    return scaled()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scaling.json"
    path.write_text(scaled().model_dump_json(by_alias=True))
    return path


def test_a_cluster_is_what_was_measured(scaling: Scaling) -> None:
    cluster = scaling.constants
    assert cluster.latency.value == 1e-5
    assert cluster.bandwidth.value == pytest.approx(1e10)
    assert cluster.addition.value == pytest.approx(ITEM / 6e-10)
    assert cluster.rate.value == 1e10
    found = {(each.net, each.devices, each.algorithm): each for each in scaling.simulated}
    assert len(found) == 3 * 12 * 5
    for (name, k, algorithm), each in found.items():
        (net,) = (net for net in nets() if net.name == name)
        sent = sum(seconds(algorithm, k, entries, cluster.link()) for entries in net.buckets())
        assert each.allreduce == pytest.approx(sent)
        assert each.apart == pytest.approx((net.forward + net.backward) / 1e10 + sent)
        assert each.overlapped <= each.apart


def test_vectors_that_nobody_copied_do_not_make_a_link_infinite(scaling: Scaling) -> None:
    known = costs(line(1e-5, 0), HERE.addition, *HERE.cut)
    cluster = as_measured(scaling.measured.model_copy(update={"costs": known}))
    assert cluster.bandwidth.value == scaling.measured.copy_rate
    assert "NumPy's copy" in cluster.bandwidth.source


def test_what_is_measured_given_and_simulated_is_told_apart(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = file.parent / "out"
    assert command.main([f"--measured={file}", f"--out={out}", "--latency=5"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("MEASURED") < printed.index("ratio") < printed.index("SIMULATED")
    assert re.search(r"star +│ +2\.00 ms │ +1\.00 ms │ +0\.50", printed)
    assert re.search(r"native +│ +2\.00 ms │ +– │ +–", printed)
    assert re.search(r"latency of a message +│ +5\.00 µs │ given", printed)
    assert re.search(r"bandwidth of a link +│ +10\.0 GB/s │ measured", printed)
    assert len(re.findall(r"^│ 4,096 +│ +(?:no|yes) ", printed, re.M)) == 6
    again = out / "scaling.json"
    assert command.main([f"--measured={again}", f"--out={out}", "--quiet", "--rate=7"]) == 0
    kept = Scaling.model_validate_json(again.read_text()).constants
    assert (kept.latency.value, kept.rate.value) == pytest.approx((5e-6, 7e9))
    assert (kept.latency.source, kept.rate.source) == ("given", "given")
    assert kept.bandwidth.source == "measured"


def test_a_prediction_that_is_off_is_named() -> None:
    ratios = {"star": 0.49, "ring": 0.51, "tree": 1.99, "halving": 2.01}
    compared = [
        Compared(entries=1000, devices=3, algorithm=name, measured=1, predicted=ratio)
        for name, ratio in ratios.items()
    ]
    said = verdict(compared)
    assert "Predicted over measured: 0.49 to 2.01 on 3 devices." in said
    assert "factor of 2: star of 4.00 kB on 3, halving of 4.00 kB on 3." in said
    assert "factor of 2: none." in verdict(compared[1:3])


def test_without_matplotlib_it_says_how_to_draw(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main([f"--measured={file}", f"--out={file.parent}", "--quiet"]) == 0
    written, hint = capsys.readouterr().out.splitlines()
    assert written == f"written: {file}"
    assert f"python -m common.scaling --quiet --measured {file}" in hint
    assert not list(file.parent.glob("*.svg"))


def test_the_first_framework_that_can_be_imported_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def import_backend(framework: str, *_: object) -> None:
        if framework == "tensorflow":
            raise AttributeError("built for another NumPy")

    monkeypatch.setattr("common.backends.loading.import_backend", import_backend)
    for library, framework in (("torch", "pytorch"), ("jax", "jax"), ("mxnet", "mxnet")):
        there = {library, "tensorflow", "mxnet"}
        monkeypatch.setattr(command, "find_spec", lambda name, there=there: name in there or None)
        assert command.importable(2) == framework
    monkeypatch.setattr(command, "find_spec", lambda name: name == "tensorflow" or None)
    with pytest.raises(RequestError, match="tensorflow cannot be imported in this Python: `nox"):
        command.importable(2)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command_line = [sys.executable, *arguments]
    return subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_names_every_flag_and_loads_nothing_heavy() -> None:
    done = python("-X", "importtime", "-m", "common.scaling", "--help")
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "argparse" in loaded
    assert not loaded & HEAVY
    assert set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.stdout, re.M)) == set(FLAGS.split())


def test_it_measures_the_framework_under_test(framework: str, tmp_path: Path) -> None:
    done = python(
        *f"-m common.scaling --framework={framework} --sizes 100000 --out={tmp_path}".split()
    )
    assert done.returncode == 0, done.stderr
    assert "MEASURED" in done.stdout
    found = Scaling.model_validate_json((tmp_path / "scaling.json").read_text())
    assert found.measured.framework == framework
    on_two = [each for each in found.measured.compared if each.devices == 2]
    assert {each.algorithm for each in on_two} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    ratios = [ratio for each in on_two if (ratio := each.ratio())]
    assert 1 / 3 < median(ratios) < 3
