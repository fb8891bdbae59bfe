"""What cannot be reached, this machine itself among others, is named before a framework waits."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from hosts_cluster import Hosts, hosts as hosts, why_not
from surroundings import FLAGS

from common.hosts.connections import CONNECT_TIMEOUT

ROOT: Final = Path(__file__).parents[2]
PORT: Final = 29500
COME: Final = f"""
import sys
from common.base.errors import RunError
from common.hosts.launchers import ByHand, launched
from common.hosts.connections import Meeting
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
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands = [(sys.executable, "-c", COME, str(rank)) for rank in range(2)]
    started = [
        hosts.start(name, *command, env={"PYTHONPATH": str(ROOT)}, **how)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    told = [each.communicate(timeout=IN_TIME) for each in started]
    return [(each.returncode, *said) for each, said in zip(started, told, strict=True)]


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


COMMANDS: Final = {
    "pytorch": ["concise --width=2", "scratch --allreduce=native"],
    "mxnet": ["concise --width=2 --wrapper=dist_sync"],
}
ITSELF: Final = "error: this machine cannot reach itself (127.0.0.1: Network is unreachable): bring"
IPV4: Final = "error: MXNet's kvstore reaches hosts by IPv4 alone: give IPv4 addresses"
ALONE: Final = "ip link set lo up; ip address del 127.0.0.1/8 dev lo;"


def run_in(network: str, framework: str, command: str, out: Path) -> tuple[int, str]:
    """The status and the error of a run in a network of its own, which a shell sets up."""
    if missing := why_not():
        pytest.skip(missing)
    chapter, *flags = command.split()
    words = [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *FLAGS, *flags]
    script = f'{network} exec "$@"'
    shell = ["unshare", "--net", "sh", "-ec", script, "sh", *words, f"--out={out}"]
    how: Any = {"capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(shell, cwd=ROOT, check=False, **how)
    return done.returncode, done.stderr


@pytest.mark.only("pytorch", "mxnet")
def test_a_machine_that_does_not_reach_itself_is_told_so(framework: str, tmp_path: Path) -> None:
    for command in COMMANDS[framework]:
        status, said = run_in("", framework, command, tmp_path)
        assert (status, ITSELF in said, said.count("\n")) == (1, True, 1), said


@pytest.mark.only("pytorch", "mxnet")
def test_ipv6_alone_is_enough_except_for_mxnet(framework: str, tmp_path: Path) -> None:
    for command in COMMANDS[framework]:
        status, said = run_in(ALONE, framework, command, tmp_path)
        if framework == "pytorch":
            assert (status, said) == (0, "")
        else:
            assert (status, IPV4 in said, said.count("\n")) == (2, True, 1), said
