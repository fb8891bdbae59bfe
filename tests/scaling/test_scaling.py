"""`python -m common.scaling`: what it prints and writes, and which requests it refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from clocks import HERE, costs, line, scaled

from common.chapters.scratch import ALLREDUCES
from common.scaling import __main__ as command, output
from common.scaling.formulas import ITEM, seconds
from common.scaling.results import Compared, Scaling
from common.scaling.simulate import as_measured
from common.scaling.tables import verdict
from common.scaling.training_step import nets

ROOT = Path(__file__).parents[2]
HEAVY = {"numpy", "pydantic", "rich", "matplotlib", "torch", "tensorflow", "jax", "mxnet"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("scaling.json")
    path.write_text(scaled().model_dump_json(by_alias=True))
    return path


def test_a_cluster_is_what_was_measured() -> None:
    scaling = scaled()
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


def test_vectors_that_nobody_copied_do_not_make_a_link_infinite() -> None:
    measured = scaled().measured
    known = costs(line(1e-5, 0), HERE.addition, *HERE.cut)
    cluster = as_measured(measured.model_copy(update={"costs": known}))
    assert cluster.bandwidth.value == measured.copy_rate
    assert "NumPy's copy" in cluster.bandwidth.source


def test_what_is_measured_given_and_simulated_is_told_apart(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "find_spec", lambda name: None)  # there is no Matplotlib
    assert command.main([f"--measured={file}", "--out=out", "--latency=5"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("MEASURED") < printed.index("ratio") < printed.index("SIMULATED")
    assert re.search(r"star +│ +2\.00 ms │ +1\.00 ms │ +0\.50", printed)
    assert re.search(r"native +│ +2\.00 ms │ +– │ +–", printed)
    assert re.search(r"latency of a message +│ +5\.00 µs │ given", printed)
    assert re.search(r"bandwidth of a link +│ +10\.0 GB/s │ measured", printed)
    assert len(re.findall(r"^│ 4,096 +│ +(?:no|yes) ", printed, re.M)) == 6
    assert "python -m common.scaling --quiet --measured out/scaling.json` draws it" in printed
    again = Path("out/scaling.json")
    assert command.main([f"--measured={again}", "--out=out", "--quiet", "--rate=7"]) == 0
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


HOSTS = "--coordinator=localhost:1 --hosts=2 --host-rank=0"
FLAWS = {
    "": "no framework is installed in this Python: `nox -s scaling`",
    "--sizes 5 0": "--sizes: '0' is not a whole number of at least 1",
    "--bandwidth nan": "--bandwidth: 'nan' is not a number above 0",
    "--rate 1e300": r"--rate 1e\+300: choose from 1e-06 to 1e\+12",
    "--measured nowhere.json": "nowhere.json cannot be read",
    "--measured scaling.json --sizes 5": "leave --framework, --sizes and other hosts out",
    "--measured spoiled.json": "spoiled.json is not a scaling.json of schema 3.*measured.copy_rate",
    f"--framework mxnet {HOSTS}": "mxnet has no messages from one process to another",
    "--measured scaling.json --out scaling.json/x": "cannot write to .*scaling.json/x",
}


@pytest.mark.parametrize(("flags", "complaint"), FLAWS.items(), ids=FLAWS.keys())
def test_a_bad_request_is_refused_in_one_line(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: str,
    complaint: str,
) -> None:
    monkeypatch.setattr(command, "installed", list)
    document = json.loads(file.read_text())
    document["measured"]["copy_rate"] = -1
    Path("spoiled.json").write_text(json.dumps(document))
    try:
        status: Any = command.main(flags.split())
    except SystemExit as end:
        status = end.code
    assert status == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"python -m common\.scaling: error: .*{complaint}.*\n", err), err
    assert not Path("results").exists()


def test_several_processes_are_told_by_name_what_to_measure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "installed", lambda: ["jax"])
    assert command.main(HOSTS.split()) == 2
    assert "name one --framework for all" in capsys.readouterr().err


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    command_line = [sys.executable, *arguments]
    return subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_loads_nothing_heavy() -> None:
    done = python("-X", "importtime", "-m", "common.scaling", "--help")
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "argparse" in loaded
    assert not loaded & HEAVY


SHORT = """
from common.scaling import __main__, measure
measure.BUDGET = 5
raise SystemExit(__main__.main())
"""


def test_it_measures_the_framework_under_test(framework: str, tmp_path: Path) -> None:
    flags = [f"--framework={framework}", "--sizes=100000", f"--out={tmp_path}"]
    done = python("-c", SHORT, *flags)
    assert done.returncode == 0, done.stderr
    assert "MEASURED" in done.stdout
    found = Scaling.model_validate_json((tmp_path / "scaling.json").read_text())
    assert found.measured.framework == framework
    on_two = [each for each in found.measured.compared if each.devices == 2]
    assert {each.algorithm for each in on_two} == ALLREDUCES.keys()
    # The bound is a factor of 2 where nothing else runs; tests run two at a time.
    ratios = [ratio for each in on_two if (ratio := each.ratio())]
    assert 1 / 3 < median(ratios) < 3
