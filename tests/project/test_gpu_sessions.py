"""With a driver that is faked, the sessions of nox run just these commands, in CUDA environments.

The environments are faked, too: their Python writes down what it is asked for.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from common.backends.driver import Card, Driver
from common.backends.frameworks import FRAMEWORKS
from sessions import accelerators, environments

ROOT = Path(__file__).parents[2]
NEEDED = ("common", "constraints", "noxfile.py", "notebooks", "pyproject.toml", "sessions")
CARDS = {"A100": (8, 0), "H100": (9, 0)}
SUITES = ["--suites", "--frameworks"]


class Installer:
    """A session that makes environments: their Python is a script that writes what it is told."""

    def run_install(self, *command: str, env: Mapping[str, str] | None = None) -> None:
        if "--clear" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.write_text('#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES> $0 $*" >> commands\n')
            python.chmod(0o755)

    def log(self, text: str) -> None:
        pass


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with every environment, for CPUs and for GPUs."""
    folder = tmp_path_factory.mktemp("house")
    for name in NEEDED:
        copy: Any = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    session: Any = Installer()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("platform.machine", lambda: "x86_64")
        for card in ("", "A100"):
            cards = tuple(Card(card, CARDS[card]) for _ in range(2) if card)
            found: Any = Driver("580.95.05", cards) if card else "none"
            patch.setattr(accelerators, "driver", lambda found=found: found)
            for each in FRAMEWORKS:
                environments.framework(session, each)
                environments.beside_rivals(session, environments.choice(session, each))
                environments.notebook(session, each)
        environments.common(session)
        environments.site(session)
    return folder


def nox(house: Path, *words: str, card: str = "", count: int = 2, **variables: str) -> list[str]:
    """What nox says with so many cards of a kind; the commands that it runs are in a file."""
    tools = house / "tools"
    tools.mkdir(exist_ok=True)
    smi = tools / "nvidia-smi"
    smi.unlink(missing_ok=True)
    if card:
        major, minor = CARDS[card]
        lines = [f"580.95.05, GPU-{n}, NVIDIA {card}, {major}.{minor}" for n in range(count)]
        smi.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        smi.chmod(0o755)
    (house / "commands").write_text("")
    clean = {k: v for k, v in os.environ.items() if k not in ("ACCELERATOR", "NOXSESSION")}
    clean.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, "-m", "nox", *words],
        cwd=house,
        env={**clean, "PATH": f"{tools}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).splitlines()


def ran(house: Path) -> list[str]:
    """The commands, each as `ENVIRONMENT WORDS`, `(hidden)` before those that see no GPU."""
    lines = (house / "commands").read_text().splitlines()
    short = [re.sub(r"^> \.nox/(\S+)/bin/python -m", r"\1:", line) for line in lines]
    return [re.sub(r"^-1> \.nox/(\S+)/bin/python -m", r"(hidden) \1:", line) for line in short]


def grids(framework: str, cuda: str, *flags: str, out: str = "results") -> list[str]:
    command = f"{framework}{cuda}: common.grid {framework} --out={out}"
    return [command, *(f"{command} {flag}" for flag in flags)]


def test_two_cards_that_serve_all(house: Path) -> None:
    said = nox(house, card="A100")
    for each in FRAMEWORKS:
        line = f"nox > {each} runs in .nox/{each}-cuda: 2 x NVIDIA A100, driver 580.95.05"
        assert said.count(line) == 1
    runs = [run for each in FRAMEWORKS for run in grids(each, "-cuda", "--gpus=2")]
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS, "--gpus=2"])
    assert ran(house) == [*runs, compared]


def test_cards_that_mxnet_has_no_code_for(house: Path) -> None:
    said = nox(house, card="H100", count=8)
    assert any("mxnet runs in .nox/mxnet: its build of CUDA 11.2 is for" in line for line in said)
    runs = [run for each in FRAMEWORKS[:3] for run in grids(each, "-cuda", "--gpus=4")]
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS, "--gpus=4"])
    assert ran(house) == [*runs, *grids("mxnet", ""), f"{compared} --without-gpu mxnet"]


@pytest.mark.parametrize(
    ("card", "asked"), [("", ""), ("A100", "cpu")], ids=["there is none", "it is not wanted"]
)
def test_on_cpus_nothing_has_changed(house: Path, card: str, asked: str) -> None:
    nox(house, card=card, ACCELERATOR=asked)
    compared = " ".join(["common: common.parity results", *SUITES, *FRAMEWORKS])
    assert ran(house) == [*(run for each in FRAMEWORKS for run in grids(each, "")), compared]


def test_the_list_names_the_environments(house: Path) -> None:
    said = "\n".join(nox(house, "--list", card="H100"))
    for name in ("pytorch-cuda", "tensorflow-cuda", "jax-cuda", "mxnet"):
        assert f"in .nox/{name};" in said
    said = "\n".join(nox(house, "--list"))
    assert all(f"in .nox/{name};" in said for name in FRAMEWORKS)


def test_cuda_that_cannot_be_is_an_error(house: Path) -> None:
    said = nox(house, "-s", "mxnet", card="H100", ACCELERATOR="cuda")
    assert any("Session mxnet aborted: mxnet: its build of CUDA 11.2" in line for line in said)
    assert ran(house) == []


def test_one_chapter_runs_where_the_list_says(house: Path) -> None:
    nox(house, "-s", "jax", "--", "scratch", "--devices", "2", card="A100")
    assert ran(house) == ["jax-cuda: frameworks.jax.scratch --devices 2"]


def test_the_grid_adds_gpus(house: Path) -> None:
    nox(house, "-s", "grid", "--", "jax", card="A100", count=3)
    more = "jax-cuda: common.grid jax --out=results --more-devices"
    compared = ["common: common.parity results", *SUITES, *FRAMEWORKS, "--gpus=3"]
    compared += ["--more-devices", "--frameworks", "jax"]
    assert ran(house) == [more, f"{more} --gpus=3", " ".join(compared)]


def test_tests_see_no_gpu(house: Path) -> None:
    nox(house, "-s", "tests", "--", "-x", card="A100")
    found = [line for line in ran(house) if "pytest" in line]
    assert len(found) == 6
    assert all(line.startswith("(hidden) ") for line in found)


def test_the_proof_is_one_session(house: Path) -> None:
    nox(house, "-s", "gpu", "--", "jax", "mxnet", card="H100", count=8)
    out = "results/on-gpus"
    jax = f"jax-cuda: common.grid jax --out={out}"
    compared = [f"common: common.parity {out}", *SUITES, "jax", "mxnet", "--more-devices"]
    assert ran(house) == [
        *(jax, f"{jax} --more-devices", f"{jax} --gpus=4", f"{jax} --gpus=4 --more-devices"),
        *grids("mxnet", "", "--more-devices", out=out),
        " ".join([*compared, "--gpus=4", "--without-gpu", "mxnet"]),
        f"jax-cuda: pytest tests/gpu --gpus=4 --framework=jax --junitxml={out}/jax-tests.xml",
        "common: bench --python=jax=.nox/bench-jax-cuda/bin/python "
        f"--gpus=4 --rounds=1 --out={out}",
        f"common: common.gpus {out}",
    ]
    nox(house, "-s", "gpu", "--", "jax", "--write", card="H100")
    assert ran(house)[-1] == f"common: common.gpus {out} --write"


def test_without_a_gpu_there_is_no_proof(house: Path) -> None:
    said = "\n".join(nox(house, "-s", "gpu"))
    assert "no framework has a GPU here: see the lines above, and docs/gpu.md" in said
    assert ran(house) == []
    nox(house, "-s", "gpu", ACCELERATOR="cuda")
    assert ran(house) == []


def test_notebooks_use_gpus_and_the_benchmark_may(house: Path) -> None:
    nox(house, "-s", "notebooks", "--", "jax", card="A100")
    assert ran(house) == ["notebooks-jax-cuda: notebooks.execute jax"]
    nox(house, "-s", "bench", card="A100")
    on_cpus = [f"--python={x}=.nox/bench-{x}/bin/python" for x in FRAMEWORKS]
    on_gpus = [each.replace("/bin", "-cuda/bin") for each in on_cpus]
    assert ran(house) == [f"common: bench {' '.join(on_cpus)} --out=results"]
    for card, served in (("A100", on_gpus), ("H100", on_gpus[:3])):
        nox(house, "-s", "bench", "--", "--gpus", "2", card=card)
        assert ran(house) == [f"common: bench {' '.join(served)} --out=results --gpus 2"]
    assert "no framework has a GPU here" in "\n".join(nox(house, "-s", "bench", "--", "--gpus=2"))
