"""A host that cannot be reached is named before a framework waits."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from hosts_cluster import Hosts, hosts as hosts

from common.hosts.supervise import CONNECT_TIMEOUT

ROOT: Final = Path(__file__).parents[2]
PORT: Final = 29500
COME: Final = f"""
import sys
from common.base.errors import RunError
from common.hosts.launchers import launched
from common.hosts.supervise import Meeting
from common.hosts.supervise import with_others
place = {{"coordinator": "n1:{PORT}", "hosts": 2, "host_rank": int(sys.argv[1])}}
here = launched("jax", {{"launcher": "auto", **place}})
try:
    with_others(Meeting(here, {{}}, print, 20), lambda process: print("worked"))
except RunError as error:
    sys.exit(str(error))
"""
IN_TIME: Final = CONNECT_TIMEOUT + 10


def come(hosts: Hosts) -> list[tuple[int, str, str]]:
    """Status, output and error of a process on each host, after some work."""
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    commands = [(sys.executable, "-c", COME, str(rank)) for rank in range(2)]
    started = [
        hosts.start(name, *command, env=os.environ | {"PYTHONPATH": str(ROOT)}, **how)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    told = [each.communicate(timeout=IN_TIME) for each in started]
    return [(each.returncode, *said) for each, said in zip(started, told, strict=True)]


def test_a_firewall_is_named_before_any_work(hosts: Hosts) -> None:
    other = ("to", hosts.addresses["n1"], "ipproto", "tcp", "dport", f"{PORT + 1}-65534")
    assert hosts.run("n2", "ip", "rule", "add", *other, "prohibit").returncode == 0
    began = time.monotonic()
    (first, _, said), (second, _, complaint) = come(hosts)
    assert (first, second) == (1, 1)
    assert "cannot reach process 0 on n1 at " in said + complaint
    assert "open all ports between the hosts" in said
    assert "worked" not in said + complaint
    assert time.monotonic() - began < IN_TIME
