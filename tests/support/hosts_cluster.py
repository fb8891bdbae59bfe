"""Hosts on one Linux machine: each is a network, UTS, mount and PID namespace, with Slurm if asked.

A host has a name, an address and an /etc/hosts of its own; a bridge in one more namespace joins
them, so the machine's own network stays as it is. They share the machine's files, as the nodes of
a cluster share a file system. Whatever ends the process that has started them ends them, too.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from started import children

KINDS: Final = ("--net", "--uts", "--mount", "--pid")
"""The namespaces of a host; the bridge has the first one alone."""

WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
"""What ends a command as soon as the process that has started it is gone."""

HOLD: Final = "echo up; read never"
"""What the first process of a host does: it says that the host is there, and stays."""

COMMANDS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo")
PACKAGES: Final = ("slurmctld", "slurmd", "slurm-client", "munge")

CONFIGURATION: Final = {
    "ClusterName": "virtual",
    "SlurmctldHost": "ctl",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "AuthInfo": "socket={folder}/munge.socket,cred_expire=5",
    "StateSaveLocation": "{folder}/state",
    "SlurmdSpoolDir": "{folder}/spool-%n",
    "SlurmctldPidFile": "{folder}/slurmctld.pid",
    "SlurmdPidFile": "{folder}/slurmd-%n.pid",
    "SlurmctldLogFile": "{folder}/slurmctld.log",
    "SlurmdLogFile": "{folder}/slurmd-%n.log",
    "ProctrackType": "proctrack/linuxproc",  # without it every task fails, and srun ends with 0
    "TaskPlugin": "task/none",
    "MpiDefault": "none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmdParameters": "config_overrides",  # more processors than there are
    "ReturnToService": "2",
    "KillWait": "5",
    "MinJobAge": "300",
    # A job starts at once, and a requeued one does not wait for two minutes.
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "NodeName": "n[1-{nodes}] CPUs=4 State=UNKNOWN",
    "PartitionName": "all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
}


def why_not(slurm: bool = False) -> str:
    """What is missing for virtual hosts here, in a line; empty if nothing is."""
    if os.geteuid() != 0:
        return "virtual hosts need root"
    needed = ["unshare", "nsenter", "setpriv", "ip", *(COMMANDS if slurm else ())]
    if missing := [name for name in needed if shutil.which(name) is None]:
        package = "util-linux, iproute2" + (f", {', '.join(PACKAGES)}" if slurm else "")
        return f"no {', '.join(missing)} here: install {package}"
    try:
        with Hosts(1):
            return ""
    except OSError as error:
        return f"no namespaces here: {error}"


class Hosts:
    """Hosts n1, n2, ...; with Slurm also `ctl`, from which jobs are submitted.

    They are parity-0.parity, parity-1.parity, ..., too, as the pods of launch/kubernetes.yaml.
    As a context manager: there are none before, and none are left after it.
    """

    def __init__(self, count: int = 2, slurm: bool = False) -> None:
        self.nodes = [f"n{number}" for number in range(1, count + 1)]
        self.names = [*(["ctl"] if slurm else []), *self.nodes]
        self.addresses = {name: f"10.99.0.{10 + at}" for at, name in enumerate(self.names)}
        self.slurm = slurm
        self.folder = Path()
        self.holders: dict[str, subprocess.Popen[bytes]] = {}
        self.inits: dict[str, int] = {}
        self.started: list[tuple[str, subprocess.Popen[Any]]] = []

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="hosts-"))
        self.folder.chmod(0o755)
        try:
            self._bring_up()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self.holders):
            self._end(name)
        for _, process in self.started:
            process.kill()  # it waits for what is gone
            with process:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bring_up(self) -> None:
        known = [f"{address} {name}\n" for name, address in self.addresses.items()]
        pods = [f"parity-{at}.parity" for at in range(len(self.nodes))]
        known += [
            f"{self.addresses[name]} {pod}\n" for name, pod in zip(self.nodes, pods, strict=True)
        ]
        (self.folder / "hosts").write_text("".join(["127.0.0.1 localhost\n", *known]))
        self._hold("switch", KINDS[:1])
        self._do(
            "switch", "ip link set lo up; ip link add bridge type bridge; ip link set bridge up"
        )
        for at, name in enumerate(self.names):
            self._hold(name, KINDS)
            port, init = f"port{at}", self.inits[name]
            self._do(
                "switch",
                f"ip link add {port} type veth peer name eth0 netns {init};"
                f"ip link set {port} master bridge up",
            )
            self._do(
                name,
                f"hostname {name}; mount --bind '{self.folder}/hosts' /etc/hosts;"
                "mount -t tmpfs shm /dev/shm; ip link set lo up;"
                f"ip addr add {self.addresses[name]}/24 dev eth0; ip link set eth0 up",
            )
        if self.slurm:
            start_slurm(self)

    def _hold(self, name: str, kinds: tuple[str, ...]) -> None:
        """Starts the process whose end is the end of the host: it ends with this one."""
        own_files = ["--mount-proc"] if "--pid" in kinds else []
        holder = subprocess.Popen(
            [*WITH_US, "unshare", *kinds, *own_files, "--kill-child", "sh", "-c", HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.holders[name] = holder
        assert holder.stdout
        assert holder.stderr
        if holder.stdout.readline() != b"up\n":
            raise OSError(holder.stderr.read().decode().strip().replace("\n", "; "))
        self.inits[name] = children(holder.pid)[0]

    def _end(self, name: str) -> None:
        holder, init = self.holders.pop(name), self.inits.pop(name, None)
        if init is None:
            holder.kill()
        else:  # the holder ends once that one is gone, and so all others of the host
            os.kill(init, signal.SIGKILL)
            for where, process in self.started:
                if where == name:  # it waits for one that may be frozen, and stands still with it
                    process.send_signal(signal.SIGCONT)
        holder.communicate(timeout=20)

    def _do(self, name: str, script: str) -> None:
        done = self.run(name, "sh", "-ec", script, capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr.strip().replace("\n", "; "))

    def command(self, name: str, *what: str) -> list[str]:
        """What runs a command on a host, in the folder that this process is in."""
        kinds = KINDS[:1] if name == "switch" else KINDS
        target = ["nsenter", f"--target={self.inits[name]}", *kinds, f"--wdns={Path.cwd()}"]
        return [*target, "--", *what]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment that commands get, with `more`."""
        return {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf", **(more or {})}

    def run(
        self, name: str, *what: str, env: Mapping[str, str] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Runs a command on a host; `env` is added to this process's."""
        found: subprocess.CompletedProcess[Any] = subprocess.run(
            self.command(name, *what),
            env=self.environment(env),
            check=how.pop("check", False),
            **how,
        )
        return found

    def start(
        self, name: str, *what: str, env: Mapping[str, str] | None = None, **how: Any
    ) -> subprocess.Popen[Any]:
        """Starts a command on a host; it ends with the host."""
        process: subprocess.Popen[Any] = subprocess.Popen(
            self.command(name, *what), env=self.environment(env), **how
        )
        self.started.append((name, process))
        return process

    def kill(self, name: str) -> None:
        """A power cut: the host falls silent, and then all that runs there is gone.

        The cable goes first, so that no farewell of a connection reaches the others.
        """
        self._do("switch", f"ip link set port{self.names.index(name)} down")
        self._end(name)


def start_slurm(hosts: Hosts) -> None:
    """Starts Slurm's daemons; returns once every node is idle. Raises OSError."""
    folder, nodes = hosts.folder, hosts.nodes
    lines = [f"{name}={value}" for name, value in CONFIGURATION.items()]
    text = "\n".join(lines).format(folder=folder, nodes=len(nodes))
    (folder / "slurm.conf").write_text(text + "\n")
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    parts = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
    files = [
        f"--{flag}={folder}/munge.{end}" for flag, end in {**parts, "seed-file": "seed"}.items()
    ]
    _daemon(hosts, "ctl", "munged", "--foreground", "--force", "--num-threads=2", *files)
    wait((folder / "munge.socket").exists, "no munged")
    _daemon(hosts, "ctl", "slurmctld", "-D")
    for node in nodes:
        _daemon(hosts, node, "slurmd", "-D", "-N", node)
    wait(lambda: idle(hosts) == len(nodes), "not every node of Slurm is idle")


def idle(hosts: Hosts) -> int:
    """How many nodes wait for work."""
    found = hosts.run(
        "ctl", "sinfo", "--noheader", "--states=idle", "--format=%D", capture_output=True, text=True
    )
    return int(found.stdout.strip() or 0)


def _daemon(hosts: Hosts, name: str, *what: str) -> None:
    with (hosts.folder / f"{what[0]}-{name}.log").open("ab") as log:
        hosts.start(name, *what, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def processes(init: int) -> list[int]:
    """Every process in the namespace of `init`, except for itself."""
    space = _space(init)
    assert space != _space(os.getpid()), "this is no host, but the machine itself"
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [process for process in found if process != init and _space(process) == space]


def wait(until: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Returns as soon as `until` holds. Raises TimeoutError, which is an OSError."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} after {seconds} s")
        time.sleep(0.05)


def send(process: int, number: signal.Signals) -> None:
    """Sends a signal, if the process is still there."""
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _space(process: int) -> str:
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return ""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Hosts]:
    """Two hosts, and a real Slurm on them; where there can be none, the test is skipped."""
    yield from _hosts(slurm=True)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Two hosts."""
    yield from _hosts(slurm=False)


def _hosts(*, slurm: bool) -> Iterator[Hosts]:
    if missing := why_not(slurm=slurm):
        pytest.skip(missing)
    with Hosts(2, slurm=slurm) as made:
        yield made
