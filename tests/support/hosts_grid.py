"""Runs the suites over hosts in one framework: on virtual hosts, or, without root, on loopback.

PYTHONPATH=. python tests/support/hosts_grid.py jax .nox/jax/bin/python --out results
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hosts_cluster import Hosts, why_not
from started import free_port

from common.chapters.chapters import SUITES
from common.chapters.suites import Suite

PORT = 29500
LIMIT = 200
"""Seconds that a run may take."""

Planned = tuple[Suite, int, int]
"""A suite, the number of devices, and that of hosts."""


def planned(most: int) -> list[Planned]:
    """The runs over several hosts, on at most so many devices."""
    return [
        (suite, devices, suite.hosts[devices])
        for suite in SUITES
        for devices in suite.counts(over_hosts=most)
        if suite.hosts[devices] > 1
    ]


def together(hosts: Hosts | None, count: int, *command: str) -> str:
    """Runs a command in so many processes, each on its host; why it failed, or nothing."""
    where = f"n1:{PORT}" if hosts else f"127.0.0.1:{free_port()}"
    flags = (f"--coordinator={where}", f"--hosts={count}", "--join-timeout=60")
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with ExitStack() as stack:
        started = []
        for rank in range(count):
            what = [*command, *flags, f"--host-rank={rank}"]
            each = (
                hosts.start(f"n{rank + 1}", *what, **how)
                if hosts
                else subprocess.Popen(what, **how)
            )
            started.append(each)
            stack.callback(each.kill)
        return "\n".join(_failures(started))


def _failures(started: Sequence["subprocess.Popen[str]"]) -> Iterator[str]:
    """What the processes that have failed have said."""
    limit = time.monotonic() + LIMIT
    for rank, each in enumerate(started):
        said, _ = each.communicate(timeout=max(1, limit - time.monotonic()))
        if each.returncode:
            yield f"process {rank} ended with status {each.returncode}: {said.strip()}"


def main() -> int:
    """Makes all runs. Returns 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework")
    parser.add_argument("python")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--over-hosts", type=int, default=4, help="on at most so many devices")
    flags = parser.parse_args()
    missing = why_not()
    if missing:
        print(f"{missing}: processes on loopback take the place of hosts", file=sys.stderr)
    failed = 0
    with ExitStack() as stack:
        hosts = None if missing else stack.enter_context(Hosts(3))
        for plan in planned(flags.over_hosts):
            suite, devices, count = plan
            began = time.monotonic()
            module = f"frameworks.{flags.framework}.{suite.chapter}"
            command = [flags.python, "-m", module, *suite.flags(devices, flags.out)]
            trouble = together(hosts, count, *command)
            name = f"{flags.framework} {suite.chapter}, {devices} devices on {count} hosts"
            print(f"{name}: {trouble or f'{time.monotonic() - began:.1f} s'}", flush=True)
            failed |= bool(trouble)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
