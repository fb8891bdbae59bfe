"""What a framework reads of the environment."""

import json
from os import environ
from pathlib import Path
from typing import Any, Final

import pytest
from agreement import edit
from fake_chapter import EVERY, CommandLine, start as start, stopping, written
from started import SMALL, python

from common.backends.frameworks import FRAMEWORKS, Environment
from common.backends.loading import package
from common.compare.folder import examine
from common.records.record import read_record
from common.report.text import subtitle

PAGE: Final = Path(__file__).parents[2] / "docs/environment.md"
FLAGS: Final = (*SMALL, "--steps=2", "--dtype=float32")
ODD: Final = {
    "pytorch": {
        "GOMP_SPINCOUNT": "0",
        "GLOO_SOCKET_IFNAME": "nonsense",  # no processes meet here
        "MASTER_ADDR": "10.0.0.9",
    },
    "tensorflow": {
        "TF_FUNCTION_JIT_COMPILE_DEFAULT": "1",
        "TF_XLA_FLAGS": "--tf_xla_auto_jit=2",
        "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1",
        "TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}',
        "TF_NUM_INTRAOP_THREADS": "3",
        "XLA_FLAGS": "--no_such_flag",
    },
    "jax": {
        # What the tests are run with stays: it may change the last bits.
        "XLA_FLAGS": f"{environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8",
        "JAX_ENABLE_X64": "0",
        "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
        "JAX_NO_TRACING": "1",
        "JAX_DEBUG_NANS": "1",
    },
    "mxnet": {
        "MXNET_ENGINE_TYPE": "NaiveEngine",
        "MXNET_CPU_WORKER_NTHREADS": "3",
        "DMLC_ROLE": "server",
    },
}
"""Values that could end a run or change its numbers."""


def trained(framework: str, out: Path, **variables: str) -> tuple[bytes, Any]:
    """The bytes of a run's tensors, and the environment in its record."""
    command = "-m", f"frameworks.{framework}.scratch", *FLAGS, f"--out={out}"
    done = python(*command, **variables)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.safetensors")
    return path.read_bytes(), read_record(out / f"{framework}-scratch-2dev.json").environment


def test_a_run_computes_the_same_whatever_it_decides_itself(framework: str, tmp_path: Path) -> None:
    (settings := tmp_path / "home/.keras/keras.json").parent.mkdir(parents=True)
    keras = {"image_data_format": "channels_first", "floatx": "float16", "epsilon": 1}
    settings.write_text(json.dumps(keras))
    homes = {"HOME": str(tmp_path / "home"), "KERAS_HOME": str(settings.parent)}
    usual = trained(framework, tmp_path / "usual")
    table = package(framework).ENVIRONMENT
    nonsense = {name.replace("*", "X"): "no" for name in (*table.decided, *table.removed)}
    # With these, oneDNN would multiply float32 in bfloat16.
    bf16 = {f"{name}_DEFAULT_FPMATH_MODE": "BF16" for name in ("DNNL", "ONEDNN")}
    variables = {**nonsense, **bf16, **homes, **ODD[framework]}
    assert trained(framework, tmp_path / "odd", **variables) == usual


def of(framework: str, variable: str, told: str) -> Any:
    return pytest.param(variable, told, marks=pytest.mark.only(framework), id=variable)


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        of("pytorch", "TORCH_LOGS=nonsense", "which is set in the environment): set it right"),
        of("tensorflow", "TF_DETERMINISTIC_OPS=maybe", "Failed to parse the env-var"),
        of("jax", "XLA_FLAGS=--xla_no_such_flag=1", "(Unknown flag in XLA_FLAGS: --xla_no_such"),
        of("mxnet", "MXNET_ENGINE_TYPE=Foo", "(MXNetError: Cannot find Engine Foo): set it right"),
        of("mxnet", "MXNET_CPU_WORKER_NTHREADS=auto", "mxnet ends when it reads"),
    ],
)
def test_a_variable_that_ends_a_run_is_named_in_its_line(
    framework: str, variable: str, told: str, tmp_path: Path
) -> None:
    name, _, value = variable.partition("=")
    command = "-m", f"frameworks.{framework}.concise", *FLAGS, f"--out={tmp_path}"
    done = python(*command, SECRET="hush", **{name: value})
    line = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert ": error: " in line
    assert variable in line
    assert told in line
    assert "hush" not in line


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_page_names_every_variable_of_the_table(name: str) -> None:
    page, table = PAGE.read_text(encoding="utf-8"), package(name).ENVIRONMENT
    for variable in (*table.decided, *table.removed, *table.defaults, *table.rounding):
        assert f"`{variable}`" in page, variable


def test_a_record_and_an_error_line_name_it_and_a_resumed_run_tells_if_it_is_another(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(step: int) -> float:
        raise ValueError(f"no such plugin, in step {step}\nand so on")

    table = Environment(rounding=("*_ISA",), breaking=("TOY_*",))
    monkeypatch.setattr("frameworks.pytorch.ENVIRONMENT", table)
    monkeypatch.setenv("TOY_ISA", "avx2")
    assert start("--quiet", loss=failing) == 1
    (line,) = start.printed().err.splitlines()
    blamed = "pytorch reads TOY_ISA=avx2, which is set in the environment"
    assert line.endswith(f"error: ValueError: no such plugin, in step 1; {blamed}")
    assert written()["failure"]["message"] == line.partition("error: ")[2]
    assert start(*EVERY, loss=stopping(3)) == 143
    assert written()["environment"] == {"TOY_ISA": "avx2"}
    monkeypatch.delenv("TOY_ISA")
    start.printed()
    assert start(*EVERY, "--resume") == 0
    assert "it may round otherwise: TOY_ISA avx2 there, not set here" in start.printed().err
    assert written()["resumed"][0]["differences"] == ["TOY_ISA avx2 there, not set here"]


def test_the_comparison_names_it_under_a_table(two: Path, theirs: Path) -> None:
    edit(theirs, environment={"TOY_ISA": "avx2"})
    (examined,) = examine(two, frameworks=["jax"])
    assert "; TOY_ISA=avx2 in jax on 2" in subtitle(examined.comparison)
