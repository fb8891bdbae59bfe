"""Runs the suites over hosts in one framework: on virtual hosts, or, without root, on loopback.

PYTHONPATH=. python tests/support/hosts_grid.py jax .nox/jax/bin/python --out results
"""

import argparse
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from hosts_cluster import Hosts, why_not
from started import free_port

from common.chapters.chapters import SUITES
from common.settings.arguments import as_flags

LIMIT: Final = 200
"""Seconds that a run may take."""


def together(hosts: Hosts | None, count: int, *command: str) -> str:
    """Runs a command in so many processes, each on its host."""
    where = "n1:29500" if hosts else f"127.0.0.1:{free_port()}"
    how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    flags = [*command, f"--coordinator={where}", f"--hosts={count}", "--join-timeout=60"]
    started = list[subprocess.Popen[str]]()
    try:
        for rank in range(count):
            line = [*flags, f"--host-rank={rank}"]
            line = hosts.command(f"n{rank + 1}", *line) if hosts else line
            started.append(subprocess.Popen(line, **how))
        outputs = [process.communicate(timeout=LIMIT)[0].strip() for process in started]
    finally:
        for process in started:
            process.kill()
    ends = {rank: f"{run.returncode}: {outputs[rank]}" for rank, run in enumerate(started)}
    failed = {rank: end for rank, end in ends.items() if started[rank].returncode}
    return "\n".join(f"process {rank} ended with {end}" for rank, end in failed.items())


def main() -> int:
    """Makes all runs. Returns 1 if one has failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework")
    parser.add_argument("python")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--over-hosts", type=int, default=4, help="on at most so many devices")
    asked, failed = parser.parse_args(), False
    if missing := why_not():
        print(f"{missing}: processes on loopback take the place of hosts", file=sys.stderr)
    todo = [(suite, k) for suite in SUITES for k in suite.counts(over_hosts=asked.over_hosts)]
    with nullcontext() if missing else Hosts(3) as hosts:
        for suite, devices in todo:
            if (count := suite.hosts[devices]) > 1:
                module, began = f"frameworks.{asked.framework}.{suite.chapter}", time.monotonic()
                flags = as_flags(suite.given(devices, asked.out))
                trouble = together(hosts, count, asked.python, "-m", module, *flags)
                name = f"{suite.chapter}, {devices} devices on {count} hosts"
                took = f"{time.monotonic() - began:.1f} s"
                print(f"{asked.framework} {name}: {trouble or took}", flush=True)
                failed = failed or bool(trouble)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
