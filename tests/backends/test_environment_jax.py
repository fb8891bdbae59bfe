"""What JAX reads of the environment: a run decides, a record names it, or an error line does."""

import os
import re
from ast import literal_eval
from pathlib import Path

import pytest
from surroundings import python, ran

from common.records.record import Record
from common.records.store import read_record

SCRATCH = "frameworks.jax.scratch"
NAME = "jax-scratch-2dev.json"

OVERRULED = {
    "JAX_PLATFORM_NAME": "gpu",
    "JAX_DEFAULT_DEVICE": "cpu:1",
    "JAX_NUM_CPU_DEVICES": "5",
    "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "none",
    "JAX_SHARE_BINARY_BETWEEN_HOSTS": "1",
    "JAX_ENABLE_RECOVERABILITY": "1",
    "PJRT_NPROC": "1",
    "JAX_ENABLE_X64": "0",
    "JAX_DEFAULT_MATMUL_PRECISION": "bfloat16",
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_TRANSFER_GUARD": "disallow",
    "JAX_ERROR_CHECKING_BEHAVIOR_NAN": "raise",
    "JAX_NO_TRACING": "1",
    "JAX_ARRAY_GARBAGE_COLLECTION_GUARD": "fatal",
    "JAX_AUTO_PCAST": "0",
    "EAGER_CONSTANT_FOLDING": "1",
    "FLAX_HIJAX_VARIABLE": "1",
    "FLAX_ARRAY_REF": "1",
    "FLAX_PYTREE_MODULE": "0",
    "NNX_GRAPH_MODE": "0",
    "FLAX_USE_FLAXLIB": "1",
}

KEPT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_DEBUG_NANS": "1",
    "JAX_TRACEBACK_FILTERING": "off",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}

pytestmark = pytest.mark.only("jax")


def run(out: Path, *flags: str, **variables: str) -> Record:
    """The record of a run with these variables."""
    done = ran(SCRATCH, out, *flags, **variables)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return read_record(out / NAME)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with nothing set beside what the tests need, and its checkpoints."""
    out = tmp_path_factory.mktemp("plain")
    run(out, f"--checkpoint-dir={out / 'kept'}", "--checkpoint-every=1")
    return out


def test_what_a_run_decides_is_overruled_and_the_rest_works(plain: Path, tmp_path: Path) -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    odd = run(tmp_path, XLA_FLAGS=flags.strip(), **OVERRULED, **KEPT)
    usual = read_record(plain / NAME)
    assert odd.devices == ["cpu:0", "cpu:1"]
    assert odd.losses == usual.losses
    assert odd.tensors == usual.tensors
    assert odd.environment == usual.environment


def test_nothing_is_left_of_what_is_overruled() -> None:
    # So few examples hide that XLA cuts products of matrices otherwise with another PJRT_NPROC.
    told = "import os; import frameworks.jax.concise; print([*os.environ])"
    done = python("-c", told, **OVERRULED)
    assert done.stderr == ""
    assert OVERRULED.keys().isdisjoint(literal_eval(done.stdout))


def test_what_may_round_otherwise_is_named(plain: Path, tmp_path: Path) -> None:
    name = "JAX_DISABLE_MOST_OPTIMIZATIONS"
    isa = {"ONEDNN_MAX_CPU_ISA": "SSE41"}
    first = min((plain / "kept").glob("*.json"))
    ours = run(tmp_path, f"--resume-from={first}", **{name: "1"}, **isa)
    usual = read_record(plain / NAME)
    assert ours.environment == {**usual.environment, name: "1", **isa}
    assert ours.resumed[0].differences == [
        f"{name} not set there, 1 here",
        "ONEDNN_MAX_CPU_ISA not set there, SSE41 here",
    ]
    assert ours.tensors != usual.tensors


@pytest.mark.parametrize(
    ("name", "value", "status", "told"),
    [
        (
            *("XLA_FLAGS", "--xla_no_such_flag=1", 2),
            r"jax ends when it reads XLA_FLAGS=--xla_no_such_flag=1 "
            r"\(Unknown flag in XLA_FLAGS: --xla_no_such_flag=1\): set it right, or unset it",
        ),
        (
            *("JAX_LOG_COMPILES", "maybe", 2),
            r"jax cannot be imported here \(.*; jax reads .*JAX_LOG_COMPILES=maybe.*\): "
            "set it right, or unset it",
        ),
    ],
)
def test_what_ends_a_run_is_named_in_a_line(
    name: str, value: str, status: int, told: str, tmp_path: Path
) -> None:
    done = ran(SCRATCH, tmp_path, **{name: value})
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(rf"python -m frameworks.jax.scratch: error: {told}\n", done.stderr), (
        done.stderr
    )


def test_of_xlas_flags_only_the_number_of_devices_goes() -> None:
    flags, left = "--a=1  --xla_force_host_platform_device_count=8 --b='2  3'", "--a=1  --b='2  3'"
    told = "import os, frameworks.jax; print(os.environ.get('XLA_FLAGS'))"
    assert python("-c", told, XLA_FLAGS=flags).stdout == f"{left}\n"
