"""The benchmark, and the pages' figures."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.__main__ import main
from bench.measure import Measurement
from bench.plan import Entry
from bench.report import Bench
from common.data.dataset import Bytes, Dataset
from common.data.synthetic import synthetic

ROOT = Path(__file__).parents[2]


def read(path: Path) -> Bench:
    return Bench.model_validate_json(path.read_text("utf-8"))


def test_every_shape_is_compiled_before_the_clock_starts() -> None:
    epochs = list[list[int]]()

    def prepare(images: Bytes, _: Bytes) -> list[int]:
        return [len(images[i : i + 256]) for i in range(0, len(images), 256)]

    contender: Any = SimpleNamespace(prepare=prepare, train=epochs.append)
    data = Dataset("synthetic", *synthetic(600, 1))
    Measurement(Entry("jax", "scratch", "keras", 1), data, 0.0).figures(contender)
    *before, timed = epochs
    assert {shape for epoch in before for shape in epoch} == set(timed)
    assert sum(timed) == 600


DATA = {"name": "synthetic", "sha256": "0" * 64, "train_examples": 1, "test_examples": 1}
FIGURES = {"images_per_second": 6000.0, "first_step": 3.0, "peak_memory": 2.0**30}
ANSWER = {"figures": FIGURES, "data": DATA, "versions": {"jax": "1"}}
STAND_IN = """
import os, sys
words = sys.argv[3:8]
with open({calls!r}, "a+") as file:
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), *words, file=file, flush=True)
    file.seek(0)
    calls = len(file.readlines())
print("noise", {answer!r}, "noise", sep="\\n")
exit(not ({succeeds}))
"""
"""A Python that answers measurements."""


def fake_python(folder: Path, succeeds: str) -> str:
    """`succeeds` is an expression of `calls`, their number, and `words`."""
    path, answer = folder / "python", json.dumps(ANSWER)
    script = STAND_IN.format(calls=str(folder / "calls"), answer=answer, succeeds=succeeds)
    path.write_text(f"#!{sys.executable}{script}")
    path.chmod(0o755)
    return f"--python=jax={path}"


KEYS = [f"jax scratch {loop} --kind" for loop in ("ours 1", "ours 2", "keras 1")]
CASES = {
    "True": [2, 2, 2],
    "'2' not in words": [2, 2],  # the others are timed all the same
    "calls <= 4": [2],  # entries that fail in any round are left out
    "False": [],
}


@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize(("succeeds", "rounds"), CASES.items())
def test_it_writes_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, succeeds: str, gpus: int, rounds: list[int]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr("bench.__main__.gpus_here", lambda: {"gpus": "two", "driver": "1.2"})
    flags = [f"--out={tmp_path}", "--rounds=2", "--chapters=scratch", *[f"--gpus={gpus}"][:gpus]]
    assert main([fake_python(tmp_path, succeeds), *flags]) == (rounds != [2, 2, 2])
    samples = read(path).samples if (path := tmp_path / "bench.json").exists() else []
    assert [len(loop.figures["first_step"]) for loop in samples] == rounds
    if succeeds == "True":
        seen = "0,1 {}=gpu" if gpus else "-1 {}=cpu"
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls == [seen.format(key) for key in KEYS] * 2


def test_the_pages_have_the_figures_of_the_benchmarks() -> None:
    names = "docs/performance.md", "README.md"
    speed, readme = ((ROOT / name).read_text("utf-8") for name in names)
    new = read(ROOT / "docs/bench-2026-11-22-avx512.json")
    ours = {
        (net, on, devices): rate for net, on, who, devices, rate, *_ in new.rows() if who == "ours"
    }
    for net, on, who, devices, rate, speedup, *_ in new.rows():
        if speedup and who != "d2l":
            row = net, on, who, devices, ours[net, on, devices], rate, speedup
            assert f"| {' | '.join(row)} |" in speed
    rivals = [x for x in new.samples if x.contender in {"keras", "estimator"}]
    lenet = [new.speedup(x) or 0 for x in rivals if x.chapter == "scratch"]
    assert f"{min(lenet):.2f} to {max(lenet):.1f} times" in readme
