"""Benchmarks of figures that are made up, and a Python that answers with them."""

import json
import sys
from pathlib import Path

from bench.plan import Entry
from bench.results import Bench, gathered
from common.records.record import DataUsed

DATA = DataUsed(name="synthetic", sha256="0" * 64, train_examples=1, test_examples=1)
MACHINE = {"operations_per_second": 1e11, "import": 1.0, "help": 0.2}
CONTENDER = {
    "first_step": 3.0,
    "epoch": 10.0,
    "step": 0.1,
    "images_per_second": 6000.0,
    "peak_memory": 2.0**30,
    "data_share": 0.01,
}


def bench_of(*figures: tuple[Entry, dict[str, float]]) -> Bench:
    return Bench(
        created="2026-01-01",
        machine={"processor": "a processor", "cores": 2},
        versions={entry.framework: {} for entry, _ in figures},
        data=DATA,
        rounds=1,
        samples=gathered(figures),
    )


ANSWER = {"figures": CONTENDER, "data": DATA.model_dump(), "versions": {"jax": "1"}}
OF_MACHINE = {"figures": MACHINE, "data": None, "versions": {"jax": "1"}}


def fake_python(folder: Path, most: int = 99) -> str:
    """A Python that answers so many measurements, and fails from then on."""
    path, calls, told = folder / "python", str(folder / "calls"), str(folder / "told")
    path.write_text(
        f"#!{sys.executable}\nwith open({calls!r}, 'a') as calls:\n    calls.write('.')\n"
        "import os, sys\n"
        f"with open({told!r}, 'a') as told:\n"
        "    print(os.environ.get('CUDA_VISIBLE_DEVICES'), *sys.argv[3:8], file=told)\n"
        f"answer = {json.dumps(ANSWER)!r}\n"
        f"answer = {json.dumps(OF_MACHINE)!r} if 'machine' in sys.argv else answer\n"
        f"print('noise')\nprint(answer)\nprint('noise')\n"
        f"exit(len(open({calls!r}).read()) > {most})"
    )
    path.chmod(0o755)
    return f"--python=jax={path}"
