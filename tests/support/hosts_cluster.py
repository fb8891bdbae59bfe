"""Hosts on one Linux machine: each is a network, UTS, mount and PID namespace.

A host has a name, an address and an /etc/hosts of its own; a bridge in one more namespace joins
them, so the machine's own network stays as it is. They share the machine's files, as the nodes of
a cluster share a file system. Whatever ends the process that has started them ends them, too.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pytest
from started import children

KINDS: Final = ("--net", "--uts", "--mount", "--pid")
"""The namespaces of a host; the bridge has the first one alone."""

HOLD: Final = ("--kill-child", "sh", "-c", "echo up; read never")
"""The first process of a host says that the host is there, and stays until its parent ends."""


def why_not() -> str:
    """Why virtual hosts do not work here, in a line; empty if they do."""
    if os.geteuid() != 0:
        return "virtual hosts need root"
    needed = ["unshare", "nsenter", "setpriv", "ip"]
    if missing := [name for name in needed if shutil.which(name) is None]:
        return f"no {', '.join(missing)} here: install util-linux and iproute2"
    try:
        with Hosts(1):
            return ""
    except OSError as error:
        return f"no namespaces here: {error}"


class Hosts:
    """Hosts n1, n2, ...

    They are parity-0.parity, parity-1.parity, ..., too, as the pods of launch/kubernetes.yaml.
    As a context manager: there are none before, and none are left after it.
    """

    def __init__(self, count: int = 2) -> None:
        self.nodes = [f"n{number}" for number in range(1, count + 1)]
        self.addresses = {name: f"10.99.0.{10 + at}" for at, name in enumerate(self.nodes)}
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

    def __exit__(self, *about: object) -> None:
        for name in list(self.holders):
            self._end(name)
        for _, process in self.started:
            process.kill()  # it waits for what is gone
            with process:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bring_up(self) -> None:
        known = ["127.0.0.1 localhost"]
        for at, (name, address) in enumerate(self.addresses.items()):
            known += [f"{address} {name}", f"{address} parity-{at}.parity"]
        (self.folder / "hosts").write_text("\n".join([*known, ""]))
        self._hold("switch", KINDS[:1])
        self._do("switch", "ip link add bridge type bridge; ip link set bridge up")
        for at, name in enumerate(self.nodes):
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

    def _hold(self, name: str, kinds: tuple[str, ...]) -> None:
        """Starts the process that holds the host's namespaces."""
        own_files = ["--mount-proc"] if "--pid" in kinds else []
        # It ends as soon as the process that has started it is gone.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", *kinds, *own_files, *HOLD]
        how: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        holder = subprocess.Popen(command, start_new_session=True, **how)
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
                if where == name:  # its child may have been frozen, and it waits for that
                    process.send_signal(signal.SIGCONT)
        holder.communicate(timeout=20)

    def _do(self, name: str, script: str) -> None:
        done = self.run(name, "sh", "-ec", script)
        if done.returncode:
            raise OSError(done.stderr.strip().replace("\n", "; "))

    def command(self, name: str, *what: str) -> list[str]:
        """The command line that runs a command on a host, in the current folder."""
        kinds = KINDS[:1] if name == "switch" else KINDS
        target = ["nsenter", f"--target={self.inits[name]}", *kinds, f"--wdns={Path.cwd()}"]
        return [*target, "--", *what]

    def run(self, name: str, *what: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command on a host."""
        command = self.command(name, *what)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def start(
        self, name: str, *what: str, env: Mapping[str, str] = os.environ, **how: Any
    ) -> subprocess.Popen[Any]:
        """Starts a command on a host; it ends with the host."""
        process = subprocess.Popen(self.command(name, *what), env=env, **how)
        self.started.append((name, process))
        return process

    def kill(self, name: str) -> None:
        """A power cut: the host falls silent, and then all that runs there is gone.

        The cable goes first, so that no farewell of a connection reaches the others.
        """
        self._do("switch", f"ip link set port{self.nodes.index(name)} down")
        self._end(name)


def processes(init: int) -> list[int]:
    """Every process in the namespace of `init`, except for itself."""
    space = _space(init)
    assert space != _space(os.getpid()), "this is no host, but the machine itself"
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in pids if pid != init and _space(pid) == space]


def send(process: int, number: signal.Signals) -> None:
    """Sends a signal, if the process is still there."""
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _space(process: int) -> str:
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return ""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """Two hosts; where there can be none, the test is skipped."""
    if missing := why_not():
        pytest.skip(missing)
    with Hosts(2) as two:
        yield two
