"""What MXNet reads of the environment changes no run, or is named."""

from pathlib import Path

import pytest
from surroundings import computed, ran, refused

from common.backends.loading import environment
from common.base.errors import RequestError
from common.records.store import read_record

pytestmark = pytest.mark.only("mxnet")

SCRATCH = "frameworks.mxnet.scratch"
NAME = "mxnet-scratch-2dev"

HARMLESS = {
    "MXNET_ENGINE_TYPE": "NaiveEngine",
    "MXNET_CPU_WORKER_NTHREADS": "3",
    "MXNET_SUBGRAPH_BACKEND": "MKLDNN",
    "MXNET_EXEC_BULK_EXEC_TRAIN": "0",
    "MXNET_BACKWARD_DO_MIRROR": "1",
    "DNNL_VERBOSE": "0",
    # What the run decides: without that, each of these ends it, but for the first.
    "DNNL_DEFAULT_FPMATH_MODE": "BF16",
    "MXNET_LIBRARY_PATH": __file__,
    "DMLC_ROLE": "server",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a run computes with none of all these variables."""
    out = tmp_path_factory.mktemp("plain")
    assert ran(SCRATCH, out).returncode == 0
    return computed(out)


def test_what_is_harmless_or_decided_by_the_run_changes_no_bit(
    plain: bytes, tmp_path: Path
) -> None:
    done = ran(SCRATCH, tmp_path, "--launcher=none", **HARMLESS)
    assert done.returncode == 0, done.stderr
    assert computed(tmp_path) == plain
    assert read_record(tmp_path / f"{NAME}.json").environment == {}


def test_a_record_names_that_onednn_was_off(plain: bytes, tmp_path: Path) -> None:
    off = {"MXNET_MKLDNN_ENABLED": "0", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"}
    assert ran(SCRATCH, tmp_path, **off).returncode == 0
    assert computed(tmp_path) != plain
    assert read_record(tmp_path / f"{NAME}.json").environment == {"MXNET_MKLDNN_ENABLED": "0"}


def test_an_engine_that_there_is_not_is_named_in_one_line(tmp_path: Path) -> None:
    line = refused(ran(SCRATCH, tmp_path, MXNET_ENGINE_TYPE="Foo"))
    assert "mxnet ends when it reads MXNET_ENGINE_TYPE=Foo" in line
    assert "(MXNetError: Cannot find Engine Foo): set it right, or unset it" in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MXNET_CPU_WORKER_NTHREADS", "auto"),  # it would abort
        ("MXNET_CPU_TEMP_COPY", "0"),  # it would divide by it
    ],
)
def test_what_ends_the_process_is_tried_in_another_one(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RequestError, match=f"{name}={value}"):
        environment("mxnet").require_harmless("mxnet")
