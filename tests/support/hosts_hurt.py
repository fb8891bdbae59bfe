"""Runs over three virtual hosts to which something happens at a chosen moment."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Final

from hosts_cluster import Hosts, processes, send
from killed_runs import Case, Runner, first_cases
from started import SECONDS, alive, children
from together import wait_until

HOSTS: Final = 3
STEPS: Final = 21
MOMENTS: Final = ("middle", "end")

SOON: Final = 30
"""Seconds in which all that remain have ended."""


@dataclass(frozen=True)
class Fault:
    """What happens, when, and to what: "supervisor" or "trainer", of the process `rank`.

    In the middle two steps are done. In the end all of them are, and the record is still to be
    written.
    """

    moment: str
    what: str
    who: str
    rank: int

    def __str__(self) -> str:
        """As a test is called."""
        return f"{self.moment}-{self.what}-{self.who}-{self.rank}".replace(" ", "-")

    def case(self, framework: str) -> Case:
        """What is run: each chapter has each kind of fault."""
        return first_cases(framework)[(self.rank + (self.moment == "middle")) % 2]

    def checkpoint(self, runner: Runner) -> str:
        """The checkpoint after which it happens."""
        return f"{runner.name}-step{2 if self.moment == 'middle' else STEPS}.json"


HOLDING: Final = Path(__file__).parent / "holding"
"""What makes a Python wait, whose path it is on."""


def waits_after(checkpoint: str, hold: Path) -> dict[str, str]:
    """The environment of a run that replaces no file after the checkpoint while there is `hold`.

    However busy the machine: what looks for the checkpoint finds the run where it left it.
    """
    path = os.pathsep.join([str(HOLDING), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return {"PYTHONPATH": path, "HELD_AFTER": checkpoint, "HELD_BY": str(hold)}


EVERY: Final = [
    Fault("middle", "killed", "supervisor", 0),
    Fault("middle", "killed", "trainer", 1),
    *(Fault("middle", "frozen", who, at) for at, who in enumerate(("trainer", "supervisor"))),
    *(Fault("end", "killed", who, at) for at, who in enumerate(("trainer", "supervisor"))),
    *(Fault("end", "frozen", who, at) for at, who in enumerate(("supervisor", "trainer"))),
    *(Fault(moment, "host gone", "host", rank) for moment in MOMENTS for rank in range(2)),
]


@dataclass
class RunOverHosts:
    """A run in the folder `name` of a runner, on hosts of its own."""

    runner: Runner
    hosts: Hosts
    name: str = "hurt"
    started: "dict[int, subprocess.Popen[str]]" = field(default_factory=dict)

    def start(
        self, ranks: Sequence[int], *flags: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts these processes; what each says goes to a file."""
        for rank in ranks:
            command = self.runner.command(self.name, *flags)
            places = ["--coordinator=n1:29500", f"--hosts={HOSTS}", f"--host-rank={rank}"]
            with self._said(rank).open("w") as said:
                self.started[rank] = self.hosts.start(
                    self.hosts.nodes[rank],
                    *command,
                    *places,
                    env=environment,
                    stdout=said,
                    stderr=said,
                )

    def _said(self, rank: int) -> Path:
        return self.runner.folder / f"{self.name}-{rank}.txt"

    def said(self, rank: int) -> str:
        """What a process has said so far."""
        return self._said(rank).read_text()

    def process(self, who: str, rank: int) -> int:
        """The number of one of the processes."""
        (supervisor,) = children(self.started[rank].pid)
        return supervisor if who == "supervisor" else children(supervisor)[0]

    def come_to(self, fault: Fault) -> None:
        """Starts, and returns at a fault's moment: the first trainer stands still then."""
        checkpoint, hold = fault.checkpoint(self.runner), self.runner.folder / "hold"
        hold.touch()
        self.start(range(HOSTS), environment=waits_after(checkpoint, hold))
        self._wait_for((self.runner.folder / self.name / checkpoint).exists)
        send(self.process("trainer", 0), SIGSTOP)
        hold.unlink()

    def _wait_for(self, moment: Callable[[], bool]) -> None:
        limit = time.monotonic() + SECONDS
        while not moment():
            for rank, each in self.started.items():
                assert each.poll() is None, self.said(rank)
            assert time.monotonic() < limit, [self.said(rank) for rank in self.started]
            time.sleep(0.002)

    def strike(self, fault: Fault) -> None:
        """Lets it happen, and the others continue."""
        first, hurt = self.process("trainer", 0), None
        if fault.what == "host gone":
            self.hosts.kill(self.hosts.nodes[fault.rank])
        else:
            hurt = self.process(fault.who, fault.rank)
            send(hurt, SIGKILL if fault.what == "killed" else SIGSTOP)
        if (first, fault.what) != (hurt, "frozen"):
            send(first, SIGCONT)

    def remain(self, fault: Fault) -> list[int]:
        """The ranks of those that have to end by themselves."""
        lost = {fault.rank} if fault.who in ("supervisor", "host") else set()
        return sorted(self.started.keys() - lost)

    def end_of(self, ranks: Sequence[int], seconds: float) -> float:
        """The seconds until all of these have ended. Raises TimeoutExpired if that takes more."""
        began = time.monotonic()
        for rank in ranks:
            self.started[rank].wait(max(0.1, began + seconds - time.monotonic()))
        return time.monotonic() - began

    def require_nothing_left(self) -> None:
        """There is no process, port or shared memory on any host that is still there."""
        for name in self.hosts.inits.keys() - {"switch"}:
            init = self.hosts.inits[name]
            wait_until(partial(self._is_empty, init), f"processes left on {name}")
            for command in (("ss", "-Hltunp"), ("ls", "-A", "/dev/shm")):
                wait_until(partial(self._says_nothing, name, command), f"{command} on {name}")

    def _says_nothing(self, name: str, command: Sequence[str]) -> bool:
        return not self.hosts.run(name, *command, capture_output=True, text=True).stdout

    def _is_empty(self, init: int) -> bool:
        for each in self.started.values():  # it sees then that what it waited for is gone
            each.send_signal(SIGCONT)
        return not any(alive(each) for each in processes(init))
