"""What cannot be reached, this machine itself among others, is named before a framework waits."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
from hosts_cluster import Hosts, hosts as hosts, why_not
from started import SECONDS
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
IPV6_ALONE: Final = "ip link set lo up; ip address del 127.0.0.1/8 dev lo;"


@pytest.mark.only("pytorch", "mxnet")
@pytest.mark.parametrize("network", ["", IPV6_ALONE], ids=["down", "IPv6"])
def test_a_machine_that_does_not_reach_itself_is_told_so(
    framework: str, network: str, tmp_path: Path
) -> None:
    """IPv6 alone is enough except for MXNet."""
    if missing := why_not():
        pytest.skip(missing)
    status, words = (1, ITSELF) if not network else (2, IPV4) if framework == "mxnet" else (0, "")
    for command in COMMANDS[framework]:
        chapter, *flags = command.split()
        run = [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *FLAGS, *flags]
        shell = ["unshare", "--net", "sh", "-ec", f'{network} exec "$@"', "sh", *run]
        how: Any = {"capture_output": True, "text": True, "timeout": SECONDS}
        done = subprocess.run([*shell, f"--out={tmp_path}"], cwd=ROOT, check=False, **how)
        lines = int(bool(words))
        assert (done.returncode, done.stderr.count("\n")) == (status, lines), done.stderr
        assert words in done.stderr
