"""The sessions of what goes wrong around a run; training through kills."""

import json
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

from sessions import environments as python_of
from sessions.environments import RESULTS, available, less_compiling


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Kill runs, fill disks, freeze processes; `-- --short`: each kind once, `-- --write`: tables.

    The tables are in docs/reliability.md. With root, runs over hosts lose hosts, too: the table of
    seconds in docs/hosts.md comes from these.
    """
    session.env.update(python_of.NO_GPUS)
    kept = RESULTS / "faults.jsonl"
    RESULTS.mkdir(exist_ok=True)
    kept.unlink(missing_ok=True)
    tests = ["-m", "pytest", "tests/faults", "tests/hosts", "--numprocesses=3"]
    tests += [f"--figures={kept}"]
    tests += ["--short", "--kills=1"] if "--short" in session.posargs else ["--kills=2"]
    passed = [passes(session, python_of.common(session), *tests)]
    for framework in available():
        python = python_of.framework(session, framework)
        env = less_compiling(framework) if "--short" in session.posargs else None
        passed.append(passes(session, python, *tests, "--framework", framework, env=env))
    if "--write" in session.posargs:
        command = " ".join(["nox -s faults --", *session.posargs])
        tables = ["tests/support/reliability.py", str(kept), f"--command={command}"]
        session.run(python_of.common(session), *tables, env={"PYTHONPATH": "."})
    if not all(passed):  # the tables tell of what was lost, too
        session.error("tests have failed, see above")


def passes(session: nox.Session, *command: str, env: dict[str, str] | None = None) -> bool:
    """Whether a command ends well, with these variables."""
    try:
        session.run(*command, env=env)
    except CommandFailed:
        return False
    return True


def train_through_kills(session: nox.Session, framework: str, folder: Path) -> None:
    """Trains the concise chapter for the book's ten epochs, and kills the run twice."""
    choice = python_of.choice(session, framework)
    python = python_of.made(session, choice)
    devices = min(2, len(choice.cards) or 2)  # there may be one GPU alone
    # At the book's constant rate the accuracy swings by some points from epoch to epoch: 0.891,
    # 0.822, 0.855 in PyTorch after the fourth, fifth and sixth.
    setting = "--preset=book --width=16 --batch-size=256 --lr=0.1 --lr-decay=linear"
    files = f"--out={folder}", f"--checkpoint-dir={folder / 'kept'}", "--resume"
    command = [python, "-m", f"frameworks.{framework}.concise", *setting.split(), *files]
    command.append(f"--devices={devices}")
    kept, run = folder / "kept", f"{framework}-concise-{devices}dev"
    done = len(newest(kept, run).get("resumed", []))  # kills of an earlier call count
    for epochs in (3, 6)[done:]:
        kill_after(epochs, command, kept, run)
    session.run(*command)


def newest(folder: Path, name: str) -> dict[str, Any]:
    """The newest checkpoint of a run's name in a folder; empty if there is none."""
    found = folder.glob(f"{name}-step*.json")
    last = max(found, key=lambda path: int(path.stem.split("-step")[1]), default=None)
    content: dict[str, Any] = json.loads(last.read_text()) if last else {}
    return content


def kill_after(epochs: int, command: Sequence[str], folder: Path, name: str) -> None:
    """Starts a command that keeps checkpoints in `folder`, and kills it after so many epochs.

    The moment is a random one of the next epoch.
    """
    with started(command) as run:
        while run.poll() is None and len(newest(folder, name).get("epochs", [])) < epochs:
            time.sleep(2)
        if run.poll() is None:
            time.sleep(random.uniform(0, newest(folder, name)["epochs"][-1]["seconds"]))
            run.kill()


@contextmanager
def started(command: Sequence[str]) -> "Iterator[subprocess.Popen[bytes]]":
    """A command under way. An error meanwhile ends it, too: it keeps a checkpoint."""
    with subprocess.Popen(command) as run:
        try:
            yield run
        except BaseException:
            run.terminate()
            raise
