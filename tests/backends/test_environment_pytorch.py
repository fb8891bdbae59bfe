"""What PyTorch reads of the environment changes no run, or is named."""

import importlib
import os
import socket
from pathlib import Path

import pytest
from surroundings import computed, ran, refused

from common.backends.devices import ALONE
from common.base.network import interface_of
from common.records.store import read_record

pytestmark = pytest.mark.only("pytorch")

SCRATCH = "frameworks.pytorch.scratch"
NAME = "pytorch-scratch-2dev"

HARMLESS = {
    "PYTORCH_JIT": "0",
    "TORCH_COMPILE_DISABLE": "1",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    "TORCH_SHOW_CPP_STACKTRACES": "1",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
    "LRU_CACHE_CAPACITY": "1",
    "GLOO_SOCKET_IFNAME": "nonsense",  # no processes meet here
    "MASTER_ADDR": "10.0.0.9",
    # What the run decides: with these, oneDNN would multiply in bfloat16.
    "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
    "DNNL_DEFAULT_FPMATH_MODE": "BF16",
}


def test_what_is_harmless_or_decided_by_the_run_changes_no_bit(tmp_path: Path) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    assert ran(SCRATCH, plain).returncode == 0
    done = ran(SCRATCH, other, **HARMLESS)
    assert (done.returncode, done.stderr) == (0, "")
    assert computed(other) == computed(plain)
    assert read_record(other / f"{NAME}.json").environment == {}


def test_a_record_names_what_may_change_rounding(tmp_path: Path) -> None:
    assert ran(SCRATCH, tmp_path, MKL_CBWR="COMPATIBLE").returncode == 0
    assert read_record(tmp_path / f"{NAME}.json").environment == {"MKL_CBWR": "COMPATIBLE"}


def test_a_variable_with_which_it_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    line = refused(ran(SCRATCH, tmp_path, TORCH_LOGS="nonsense"))
    assert "TORCH_LOGS=nonsense, which is set in the environment): set it right" in line
    assert "installs it" not in line


def test_a_variable_with_which_its_processes_cannot_meet_is_named(tmp_path: Path) -> None:
    line = refused(ran("frameworks.pytorch.concise", tmp_path, GLOO_SOCKET_IFNAME="nonsense"))
    assert "pytorch reads GLOO_SOCKET_IFNAME=nonsense, which is set in the environment" in line


def test_on_one_host_no_other_host_can_come_in(monkeypatch: pytest.MonkeyPatch) -> None:
    rendezvous = importlib.import_module("frameworks.pytorch.rendezvous")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")  # so that it is put back
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    with rendezvous.interface_used(ALONE):
        assert os.environ["GLOO_SOCKET_IFNAME"] == interface_of("127.0.0.1")
    assert "GLOO_SOCKET_IFNAME" not in os.environ  # or an error would blame it on the reader
    meeting = rendezvous.Rendezvous.of(ALONE)
    socket.create_connection(("127.0.0.1", meeting.port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", meeting.port))
