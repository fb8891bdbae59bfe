"""Runs the suites over hosts in one framework: on virtual hosts, or, without root, on loopback.

PYTHONPATH=. python tests/support/hosts_grid.py jax .nox/jax/bin/python --out results
"""

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from hosts_cluster import Hosts, why_not
from started import free_port

from common.chapters.chapters import SUITES
from common.settings.arguments import as_flags

LIMIT: Final = 200
"""Seconds that a run may take."""


def together(hosts: Hosts | None, count: int, *command: str) -> str:
    """Runs a command in so many processes, each on its host; why it failed, or nothing."""
    where = "n1:29500" if hosts else f"127.0.0.1:{free_port()}"
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    limit, started = time.monotonic() + LIMIT, list[subprocess.Popen[str]]()
    flags = [*command, f"--coordinator={where}", f"--hosts={count}", "--join-timeout=60"]
    try:
        for rank in range(count):
            each = [*flags, f"--host-rank={rank}"]
            each = hosts.command(f"n{rank + 1}", *each) if hosts else each
            started.append(subprocess.Popen(each, **how))
        said = [each.communicate(timeout=max(1, limit - time.monotonic()))[0] for each in started]
    finally:
        for process in started:
            process.kill()
    ends = enumerate(zip(started, said, strict=True))
    return "\n".join(
        f"process {rank} ended with {each.returncode}: {why.strip()}"
        for rank, (each, why) in ends
        if each.returncode
    )


def main() -> int:
    """Makes all runs. Returns 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework")
    parser.add_argument("python")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--over-hosts", type=int, default=4, help="on at most so many devices")
    flags = parser.parse_args()
    if missing := why_not():
        print(f"{missing}: processes on loopback take the place of hosts", file=sys.stderr)
    failed = False
    with ExitStack() as stack:
        hosts = None if missing else stack.enter_context(Hosts(3))
        for suite in SUITES:
            command = [flags.python, "-m", f"frameworks.{flags.framework}.{suite.chapter}"]
            for devices in suite.counts(over_hosts=flags.over_hosts):
                if (count := suite.hosts[devices]) > 1:
                    began = time.monotonic()
                    trouble = together(
                        hosts, count, *command, *as_flags(suite.given(devices, flags.out))
                    )
                    name = f"{suite.chapter}, {devices} devices on {count} hosts"
                    took = f"{time.monotonic() - began:.1f} s"
                    print(f"{flags.framework} {name}: {trouble or took}", flush=True)
                    failed = failed or bool(trouble)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
