"""The benchmark on GPUs: what is timed there, and that nothing else sees one."""

from pathlib import Path

import pytest
from benches import CONTENDER, bench_of, fake_python

from bench.__main__ import main
from bench.plan import FABRIC, WORKLOADS, entries
from bench.report import markdown
from bench.results import Bench
from bench.targets import ON_GPUS, targets
from common.backends.frameworks import FRAMEWORKS


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_on_gpus_ours_runs_on_one_and_on_all(gpus: int) -> None:
    everything = entries(FRAMEWORKS, tuple(WORKLOADS), gpus)
    assert {each.wanted.kind for each in everything} == {"gpu"}
    ours = [each for each in everything if each.contender == "ours"]
    assert {each.devices for each in ours} == {1, gpus}
    assert {each.devices for each in everything if each not in ours} == {1}
    concise = [each.workload for each in everything if each.chapter == "concise"]
    assert all(each.examples == 25 * each.batch_size <= 60_000 for each in concise)
    assert {each.batch_size for each in concise} == {256, 256 * gpus}


def test_on_gpus_every_target_is_measured() -> None:
    everything = entries(FRAMEWORKS, tuple(WORKLOADS), 2)
    bench = bench_of(*((each, CONTENDER) for each in everything))
    bench.machine |= {"gpus": "2 x NVIDIA A100", "driver": "580.95.05"}
    assert targets(bench) == ON_GPUS
    for name in FRAMEWORKS:
        known = [target for target in ON_GPUS if target.cell(bench, name)]
        assert len(known) == (4 if name in FABRIC.contenders else 2)
    page = markdown(bench)
    assert "float32 without TF32; 2 x NVIDIA A100, driver 580.95.05" in page
    assert "| LeNet | jax | ours | 1 GPU |" in page
    assert "| LeNet | jax | ours | 2 GPUs |" in page


def test_where_cpus_are_timed_rivals_see_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr("bench.__main__.gpus_here", lambda: {"gpus": "two", "driver": "1.2"})
    flags = fake_python(tmp_path), f"--out={tmp_path}", "--rounds=1", "--chapters", "scratch"
    assert main(flags) == 0
    assert main([*flags, "--gpus=2"]) == 0
    told = (tmp_path / "told").read_text().splitlines()
    contenders = [("ours", 1), ("ours", 2), ("keras", 1)]
    on_cpus = [f"-1 jax scratch {each} {k} --kind=cpu" for each, k in [*contenders, ("d2l", 1)]]
    on_gpus = [f"0,1 jax scratch {each} {k} --kind=gpu" for each, k in contenders]
    assert told == [*on_cpus, "-1 jax none machine 1 --kind=cpu", *on_gpus]
    bench = Bench.model_validate_json((tmp_path / "bench.json").read_text())
    assert (bench.machine["gpus"], bench.machine["driver"]) == ("two", "1.2")
