"""The sessions of what goes wrong around a run, and of files that mean harm."""

from pathlib import Path
from typing import Final

import nox
from nox.command import CommandFailed

from sessions import environments as python_of
from sessions.environments import available, less_compiling
from sessions.kills import kill_on_its_way

FIGURES: Final = Path("results/faults")
PAGE: Final = Path("docs/reliability.md")
HOSTS: Final = Path("docs/hosts.md")


@nox.session(venv_backend="none")
def faults(session: nox.Session) -> None:
    """Kill runs, fill disks, freeze processes; `-- --short`: each kind once, `-- --write`: a page.

    The page, docs/reliability.md, also has what `nox -s fuzz` has found. With root, runs over hosts
    lose some, too; the table of seconds in docs/hosts.md is of these.
    """
    session.env.update(python_of.NO_GPUS)
    FIGURES.mkdir(parents=True, exist_ok=True)
    kept = FIGURES / "faults.jsonl"
    kept.unlink(missing_ok=True)
    tests = ["-m", "pytest", "tests/faults", "tests/hosts", "--kills=2", "--numprocesses=3"]
    tests += [f"--figures={kept}"]
    tests += ["--short"] if "--short" in session.posargs else []
    passed = [passes(session, python_of.common(session), *tests)]
    for framework in available():
        python = python_of.framework(session, framework)
        env = less_compiling(framework) if "--short" in session.posargs else None
        passed.append(passes(session, python, *tests, "--framework", framework, env=env))
    if "--write" in session.posargs:
        figures = [str(kept), *map(str, sorted(FIGURES.glob("*.json")))]
        command = " ".join(["nox -s faults --", *session.posargs])
        page = ["tests/support/reliability.py", *figures, f"--command={command}"]
        environment = {"PYTHONPATH": "."}
        session.run(python_of.common(session), *page, f"--out={PAGE}", env=environment)
        seconds = ["tests/support/hosts_seconds.py", str(kept), f"--command={command}"]
        session.run(python_of.common(session), *seconds, f"--out={HOSTS}", env=environment)
    if not all(passed):  # the page tells of what was lost, too
        session.error("tests have failed, see above")


def passes(session: nox.Session, *command: str, env: dict[str, str] | None = None) -> bool:
    """Whether a command ends well, with these variables."""
    try:
        session.run(*command, env=env)
    except CommandFailed:
        return False
    return True


@nox.session(venv_backend="none")
def fuzz(session: nox.Session) -> None:
    """Give each reader of files a million hostile ones; three hours."""
    python = python_of.environment(session, "fuzz")
    session.run(python, "-m", "fuzz", f"--out={FIGURES}", *session.posargs)


def train_through_kills(session: nox.Session, framework: str, folder: Path) -> None:
    """Trains the concise chapter for the book's ten epochs, and kills it twice on its way."""
    choice = python_of.choice(session, framework)
    python = python_of.made(session, choice)
    devices = min(2, len(choice.cards) or 2)  # there may be one GPU alone
    # At the book's constant rate the accuracy swings by some points from epoch to epoch: 0.891,
    # 0.822, 0.855 in PyTorch after the fourth, fifth and sixth.
    setting = "--preset=book --width=16 --batch-size=256 --lr=0.1 --lr-decay=linear"
    files = f"--out={folder}", f"--checkpoint-dir={folder / 'kept'}", "--resume"
    command = [python, "-m", f"frameworks.{framework}.concise", *setting.split(), *files]
    command.append(f"--devices={devices}")
    run = f"{framework}-concise-{devices}dev"
    kill_on_its_way(command, folder / "kept", run, epochs=10, kills=2)
    session.run(*command)
