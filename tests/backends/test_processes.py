"""PyTorch's processes: their parent dies, two runs at once, torchrun, and what needs GPUs."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from started import CONCISE, SECONDS, alive, children, flags

pytestmark = pytest.mark.only("pytorch")

ROOT = Path(__file__).parents[2]
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


def workers(run: int) -> list[int]:
    """The processes of the devices, in order: a server has started them."""
    return [worker for child in children(run) for worker in children(child)]


def training(run: "subprocess.Popen[str]", folder: Path) -> list[int]:
    """Waits until the record says that the run has begun; its workers."""
    limit = time.monotonic() + SECONDS
    while not (folder / RECORD).is_file():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return workers(run.pid)


def test_the_death_of_a_parent_in_the_background_leaves_no_process(tmp_path: Path) -> None:
    # What a shell starts there ignores SIGINT, and so does all that it starts.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    run = start([*CONCISE, *flags(tmp_path, 1_000_000), "--quiet"])
    signal.signal(signal.SIGINT, before)
    processes = training(run, tmp_path)
    run.kill()
    run.communicate(timeout=30)  # the pipes stay open as long as a process is left
    limit = time.monotonic() + 30
    while any(alive(process) for process in processes):
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_neither_a_port_in_use_nor_another_run_disturbs(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        runs = [start([*CONCISE, *flags(tmp_path / name, 3)], **port) for name in "ab"]
        results = [(*run.communicate(timeout=SECONDS), run.returncode) for run in runs]
    assert [status for _, _, status in results] == [0, 0], results
    first, second = (
        load_file(tmp_path / name / RECORD.replace("json", "safetensors")) for name in "ab"
    )
    assert all(np.array_equal(values, second[name]) for name, values in first.items())


def test_torchrun_starts_the_same_run(tmp_path: Path) -> None:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    for name, command in (("own", CONCISE), ("torchrun", [*torchrun, *CONCISE])):
        run = start([*command, *flags(tmp_path / name, 3)])
        out, err = run.communicate(timeout=SECONDS)
        assert run.returncode == 0, err
        assert out.count("test acc: ") == 1
    tensors = RECORD.replace("json", "safetensors")
    own, other = (load_file(tmp_path / name / tensors) for name in ("own", "torchrun"))
    for name, values in own.items():
        np.testing.assert_allclose(other[name], values, rtol=1e-9, atol=1e-12)


def test_torchrun_must_start_as_many_processes_as_devices(tmp_path: Path) -> None:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3"]
    run = start([*torchrun, *CONCISE, *flags(tmp_path, 3)])
    _, err = run.communicate(timeout=SECONDS)
    assert run.returncode != 0
    assert err.count("2 devices cannot be shared by 3 processes") == 1
    assert not list(tmp_path.iterdir())


def test_what_starts_the_processes_of_devices_is_heard_before_it_loads_pytorch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = import_module("frameworks.pytorch.launch")
    forking = import_module("common.backends.forking")
    started = []

    def process(target: Any, args: Any) -> None:
        started.append((target, *args))
        raise NotImplementedError

    context = SimpleNamespace(Process=process)
    monkeypatch.setattr(forking.multiprocessing, "get_context", lambda name: context)
    with pytest.raises(NotImplementedError):
        launch.launch_processes(print, 2)
    serve, _, preload, _, places, _ = started[0]
    read = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[1], 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", read],
        cwd=ROOT,
        input=pickle.dumps((serve, len(places), preload)),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"2 False\n"


def test_data_parallel_is_refused_on_cpus(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_text("of an earlier run")
    run = start([*CONCISE, *flags(tmp_path, 3), "--wrapper=dp", "--device-kind=cpu", "--quiet"])
    out, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "--wrapper dp needs GPUs" in err
    assert (tmp_path / RECORD).read_text() == "of an earlier run"


def test_no_thread_outlives_its_group() -> None:
    """One that did would abort the process now and then, as the interpreter ends."""
    train = "\n".join(
        [
            "import torch",
            "from pathlib import Path",
            "from torch.nn.parallel import DistributedDataParallel",
            "from frameworks.pytorch.launch import launch_processes",
            "def threads():",
            "    names = [file.read_text() for file in Path('/proc/self/task').glob('*/comm')]",
            "    return sum('gloo' in name for name in names)",
            "def worker(rank):",
            "    model = DistributedDataParallel(torch.nn.Linear(2, 1))",
            "    model(torch.ones(1, 2)).sum().backward()",
            "    print(threads())",
            "launch_processes(worker, 1)",
            "print(threads())",
        ]
    )
    output, errors = start(["-c", train]).communicate(timeout=SECONDS)
    during, after = map(int, output.split())
    assert during > after == 0, errors
