"""A lost process or host ends a run over hosts soon, by name, and leaves nothing."""

import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Final, NamedTuple

import pytest
from hosts_cluster import Hosts, processes, send, why_not
from killed_runs import Runner, first_cases
from started import SECONDS, alive, children
from together import wait_until

from common.training.checkpoints import checkpoints_in, read_checkpoint

pytestmark = [pytest.mark.faults, pytest.mark.short("pytorch")]

HOSTS: Final = 3

SOON: Final = 30
"""Seconds in which all that remain have ended."""


class Fault(NamedTuple):
    """Hurts the "supervisor", "trainer" or "host" of a process after its second step."""

    what: str
    who: str
    rank: int

    def __str__(self) -> str:
        """As a test is called."""
        return "-".join(map(str, self))


SAME_BITS = Fault("gone", "host", 1)
"""After this one a run over hosts resumes."""

EVERY: Final = [
    *(Fault("killed", who, rank) for rank, who in enumerate(("supervisor", "trainer"))),
    *(Fault("frozen", who, rank) for rank, who in enumerate(("trainer", "supervisor"))),
    *(Fault("gone", "host", rank) for rank in range(2)),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" in metafunc.fixturenames:
        short = metafunc.config.getoption("--short")
        metafunc.parametrize("fault", [SAME_BITS] if short else EVERY, ids=str)


@dataclass
class RunOverHosts:
    """A run in the folder "hurt" of a runner, on hosts of its own."""

    runner: Runner
    hosts: Hosts
    started: "dict[int, subprocess.Popen[str]]" = field(default_factory=dict)

    def start(self, *flags: str) -> None:
        """Starts all processes; what each says goes to a file."""
        for rank, name in enumerate(self.hosts.nodes):
            places = ["--coordinator=n1:29500", f"--hosts={HOSTS}", f"--host-rank={rank}"]
            command = self.runner.command("hurt", *flags, *places)
            with self.file(rank).open("w") as said:
                self.started[rank] = self.hosts.start(name, *command, stdout=said, stderr=said)

    def file(self, rank: int) -> Path:
        """What a process says."""
        return self.runner.folder / f"hurt-{rank}.txt"

    def strike(self, fault: Fault) -> None:
        """Lets it happen once there is a checkpoint."""
        while not self.runner.newest("hurt"):
            for rank, each in self.started.items():
                assert each.poll() is None, self.file(rank).read_text()
            time.sleep(0.002)
        if fault.who == "host":
            self.hosts.kill(self.hosts.nodes[fault.rank])
        else:
            (process,) = children(self.started[fault.rank].pid)
            if fault.who == "trainer":
                (process,) = children(process)
            send(process, SIGKILL if fault.what == "killed" else SIGSTOP)

    def end(self, ranks: Iterable[int], seconds: float) -> dict[int, tuple[int, str]]:
        """Status and last line of these processes. Raises TimeoutExpired."""
        limit = time.monotonic() + seconds
        for rank in ranks:
            self.started[rank].wait(max(0.1, limit - time.monotonic()))
        last = {rank: self.file(rank).read_text().strip().rpartition("\n")[2] for rank in ranks}
        return {rank: (self.started[rank].returncode, last[rank]) for rank in ranks}

    def require_nothing_left(self) -> None:
        """Asserts that no host has a process, port or shared memory left."""
        for name in self.hosts.inits.keys() - {"switch"}:
            init = self.hosts.inits[name]
            wait_until(partial(self._is_empty, init), f"processes left on {name}")
            for command in (("ss", "-Hltunp"), ("ls", "-A", "/dev/shm")):
                said = partial(self.hosts.run, name, *command)
                wait_until(partial(_says_nothing, said), f"{command} on {name}")

    def _is_empty(self, init: int) -> bool:
        for each in self.started.values():
            each.send_signal(SIGCONT)
        return not any(alive(each) for each in processes(init))


def _says_nothing(said: "Callable[[], subprocess.CompletedProcess[str]]") -> bool:
    return not said().stdout


def test_a_run_that_loses_a_process_or_a_host_ends_soon(
    framework: str, fault: Fault, tmp_path: Path
) -> None:
    if missing := why_not():
        pytest.skip(missing)
    case = first_cases(framework)[1 - fault.rank]
    case = replace(case, options=(*case.options, "--epochs=9"))
    runner = Runner(framework, case, tmp_path)
    with Hosts(HOSTS) as hosts:
        run = RunOverHosts(runner, hosts)
        run.start()
        run.strike(fault)
        lost = {fault.rank} if fault.who in ("supervisor", "host") else set()
        for status, said in run.end(set(range(HOSTS)) - lost, SOON).values():
            assert status == 1, said
            assert ": error: " in said
            assert f"process {fault.rank} on n{fault.rank + 1}" in said
        run.require_nothing_left()
    assert runner.record("hurt").status != "complete"
    newest = checkpoints_in(tmp_path / "hurt", runner.name)[0]
    read_checkpoint(newest)
    if fault.rank == 0:
        runner.finish("alone", f"--resume-from={newest}")
        differences = runner.record("alone").resumed[-1].differences
        assert "devices 1 + 1 + 1 there, 3 here" in differences
    if fault == SAME_BITS:
        with Hosts(HOSTS) as hosts:
            run = RunOverHosts(runner, hosts)
            run.start("--resume")
            ends = run.end(range(HOSTS), SECONDS)
            assert [status for status, _ in ends.values()] == [0] * HOSTS, ends
        runner.finish("whole")
        runner.require_same("whole", "hurt")
