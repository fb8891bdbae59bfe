"""PyTorch's processes: they meet at a port of their own, and leave no thread."""

import socket
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from started import SMALL, python, require_proc

pytestmark = pytest.mark.only("pytorch")


def test_a_port_in_use_does_not_disturb(tmp_path: Path) -> None:
    """It may be that of another run."""
    command = "-m", "frameworks.pytorch.concise", *SMALL, "--width=4", "--steps=1"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        done = python(*command, f"--out={tmp_path}", **port)
    assert done.returncode == 0, done.stderr


THREADS: Final = """
import torch
from functools import partial
from pathlib import Path
from common.backends.interface import DeviceRequest
from common.chapters.concise import ConciseOptions
from frameworks.pytorch.hosts import launch
from frameworks.pytorch.wrappers import wrap
def threads():
    names = [file.read_text() for file in Path('/proc/self/task').glob('*/comm')]
    return sum('gloo' in name for name in names)
def worker(process, wrapper):
    model = wrap(torch.nn.Linear(2, 1), [torch.device('cpu')], wrapper)
    model(torch.ones(1, 2)).sum().backward()
    torch.optim.SGD(model.parameters()).step()
    print(threads())
for wrapper in ('ddp', 'fsdp'):
    options = ConciseOptions(1, 'per-device', wrapper)
    launch(partial(worker, wrapper=wrapper), DeviceRequest(1, 'cpu', 1), options)
    print(threads())
"""


def test_no_thread_outlives_its_group() -> None:
    """A thread that stays can abort the process when the interpreter ends."""
    require_proc()
    done = python("-c", THREADS)
    for during, after in np.array(done.stdout.split(), int).reshape(2, 2):
        assert during > after == 0, done.stderr
