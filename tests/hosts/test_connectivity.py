"""A host that others cannot reach at every port is named before a framework waits for it."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from hosts_cluster import Hosts, hosts as hosts

from common.backends.devices import Process
from common.base.errors import RunError
from common.base.network import connected
from common.hosts.wire import CONNECT_TIMEOUT, listener, require_reach

ROOT: Final = Path(__file__).parents[2]
PORT: Final = 29500
COME: Final = f"""
import sys
from common.base.errors import RunError
from common.hosts.launchers import ByHand, launched
from common.hosts.meeting import Meeting
from common.hosts.supervise import with_others
here = launched("jax", "auto", ByHand("n1:{PORT}", 2, int(sys.argv[1])))
try:
    with_others(Meeting(here, {{}}, print, 20), lambda process: print("worked"))
except RunError as error:
    sys.exit(str(error))
"""
IN_TIME: Final = CONNECT_TIMEOUT + 10


def come(hosts: Hosts) -> list[tuple[int, str, str]]:
    """Status, output and error of a process on each host, which meet and then do some work."""
    env, piped = {"PYTHONPATH": str(ROOT)}, subprocess.PIPE
    commands = [(sys.executable, "-c", COME, str(rank)) for rank in range(2)]
    started = [
        hosts.start(name, *command, env=env, stdout=piped, stderr=piped)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    told = [each.communicate(timeout=IN_TIME) for each in started]
    return [
        (each.returncode, out.decode(), err.decode())
        for each, (out, err) in zip(started, told, strict=True)
    ]


def test_a_firewall_is_named_before_any_work(hosts: Hosts) -> None:
    other = ("to", hosts.addresses["n1"], "ipproto", "tcp", "dport", f"{PORT + 1}-65534")
    hosts.run("n2", "ip", "rule", "add", *other, "prohibit", check=True)
    began = time.monotonic()
    (first, _, said), (second, _, heard) = come(hosts)
    assert (first, second) == (1, 1)
    assert "cannot reach process 0 on n1 at " in said + heard
    assert "open all ports between the hosts" in said
    assert "worked" not in said + heard
    assert time.monotonic() - began < IN_TIME


def test_hosts_that_have_both_meet_by_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, kind = socket.getaddrinfo, socket.SOCK_STREAM

    def both(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        if host != "n1":
            return asked(host, port, *rest, **more)
        ways = ((socket.AF_INET6, ("::1", port, 0, 0)), (socket.AF_INET, ("127.0.0.1", port)))
        return [(family, kind, 6, "", address) for family, address in ways]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with listener(0) as taking:
        port = taking.getsockname()[1]
        with connected("n1", port, 5) as connection:
            assert connection.family == socket.AF_INET
    with pytest.raises(ConnectionRefusedError):
        connected("n1", port, 5)


def test_an_address_that_only_others_know_is_named() -> None:
    process = Process(0, 2, hosts=("n1", "n2"), addresses=("192.0.2.1", "192.0.2.2"))
    with pytest.raises(RunError, match=r"others see this host at 192\.0\.2\.1, which"):
        require_reach(process)
