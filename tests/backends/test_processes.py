"""PyTorch's processes: two runs at once, and how they end."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from safetensors.numpy import load_file
from started import SECONDS, SMALL, require_proc

pytestmark = pytest.mark.only("pytorch")

ROOT = Path(__file__).parents[2]
CONCISE = ["-m", "frameworks.pytorch.concise", *SMALL, "--width=4", "--steps=3"]
RECORD = "pytorch-concise-2dev.json"


def start(command: list[str], **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_neither_a_port_in_use_nor_another_run_disturbs(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        runs = [start([*CONCISE, f"--out={tmp_path / name}"], **port) for name in "ab"]
        results = [(*run.communicate(timeout=SECONDS), run.returncode) for run in runs]
    assert [status for _, _, status in results] == [0, 0], results
    first, second = (
        load_file(tmp_path / name / RECORD.replace("json", "safetensors")) for name in "ab"
    )
    assert all(np.array_equal(values, second[name]) for name, values in first.items())


THREADS: Final = """
import sys, torch
from pathlib import Path
from common.backends.devices import DeviceRequest
from common.chapters.concise import ConciseOptions
from frameworks.pytorch.wrappers import launch, wrap
wrapper = sys.argv[1]
def threads():
    names = [file.read_text() for file in Path('/proc/self/task').glob('*/comm')]
    return sum('gloo' in name for name in names)
def worker(process):
    model = wrap(torch.nn.Linear(2, 1), [torch.device('cpu')], wrapper)
    model(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(model.parameters()).step()
    print(threads())
launch(worker, DeviceRequest(1, 'cpu', 1), ConciseOptions(1, 'per-device', wrapper))
print(threads())
"""


@pytest.mark.parametrize("wrapper", ["ddp", "fsdp"])
def test_no_thread_outlives_its_group(wrapper: str) -> None:
    """A thread that stays can abort the process when the interpreter ends."""
    require_proc()
    output, errors = start(["-c", THREADS, wrapper]).communicate(timeout=SECONDS)
    during, after = map(int, output.split())
    assert during > after == 0, errors
