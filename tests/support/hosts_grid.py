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


def run(hosts: Hosts | None, python: str, framework: str, plan: Planned, results: Path) -> str:
    """Makes one run over hosts; why it failed, or nothing."""
    suite, devices, count = plan
    where = "n1" if hosts else "127.0.0.1"
    port = PORT if hosts else free_port()
    command = [python, "-m", f"frameworks.{framework}.{suite.chapter}"]
    command += [*suite.flags(devices, results), f"--coordinator={where}:{port}", f"--hosts={count}"]
    with ExitStack() as stack:
        started = []
        for rank in range(count):
            what = [*command, f"--host-rank={rank}", "--join-timeout=60"]
            how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            each = (
                hosts.start(f"n{rank + 1}", *what, text=True, **how)
                if hosts
                else subprocess.Popen(what, text=True, **how)
            )
            started.append(each)
            stack.callback(each.kill)
        return "\n".join(failures(started))


def failures(started: Sequence["subprocess.Popen[str]"]) -> Iterator[str]:
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
            trouble = run(hosts, flags.python, flags.framework, plan, flags.out)
            name = f"{flags.framework} {suite.chapter}, {devices} devices on {count} hosts"
            print(f"{name}: {trouble or f'{time.monotonic() - began:.1f} s'}", flush=True)
            failed |= bool(trouble)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
