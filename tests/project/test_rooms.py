"""The rooms of `common/`, and of `notebooks/`, import only rooms above them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from started import ROOT, python

from common.backends.frameworks import FRAMEWORKS
from common.records import record

ROOMS = (
    *("base", "terminal", "data", "models", "parallel", "backends", "chapters", "trainers"),
    *("drawing", "settings", "records", "training", "compare", "pairs", "diagnose", "report"),
    *("scaling", "judge"),
)
"""Lowest first: a room imports itself and those before it."""

LESSONS = ("drawing", "explorers", "text", "classroom", "exercises", "web")
"""The rooms of `notebooks/`, lowest first."""

OTHERS = {
    name.removeprefix("py"): [
        f"frameworks/{folder}" for folder in ("strategies", *FRAMEWORKS) if folder != name
    ]
    for name in FRAMEWORKS
}
"""For each framework's package, the folders of `frameworks/` of the others."""

BACKENDS = {"base", "models", "parallel", "backends", "chapters", "trainers"}
"""The rooms of `common/` that a backend imports, except in its `__main__` block."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path, package: str) -> Iterator[tuple[ast.ImportFrom, str]]:
    """Every import of the project's packages in a file, and the module's name."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom):
            first, _, rest = (node.module or "").partition(".")
            if first == package:
                yield node, rest
        if isinstance(node, ast.Import):
            assert not any(alias.name.startswith(package) for alias in node.names), path


@pytest.mark.parametrize(
    ("package", "rooms", "folders"),
    [
        *(("common", ROOMS[:n], [f"common/{room}"]) for n, room in enumerate(ROOMS, 1)),
        *(("notebooks", LESSONS[:n], [f"notebooks/{room}"]) for n, room in enumerate(LESSONS, 1)),
        *((x, (), ["common", "frameworks"]) for x in ("notebooks", "bench", "silent", "planted")),
        *((name, (), ["common", "notebooks", "sessions", *OTHERS[name]]) for name in OTHERS),
        ("frameworks", (), ["notebooks", "sessions", "silent"]),
        ("frameworks", ("strategies",), ["frameworks/strategies"]),
    ],
)
def test_of_a_package_only_these_rooms_are_imported_in(
    package: str, rooms: tuple[str, ...], folders: list[str]
) -> None:
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for _, module in imported(path, package):
            assert module.split(".")[0] in rooms, f"{path}: {module}"


def test_backends_import_only_their_rooms() -> None:
    for path in (ROOT / "frameworks").rglob("*.py"):
        commands = {
            node.lineno
            for block in parsed(path).body
            if path.name == "__main__.py"
            or (isinstance(block, ast.If) and ast.unparse(block.test) == "__name__ == '__main__'")
            for node in ast.walk(block)
            if isinstance(node, ast.ImportFrom)
        }
        for node, module in imported(path, "common"):
            allowed = module.split(".")[0] in BACKENDS or node.lineno in commands
            assert allowed, f"{path}: {module}"


def test_no_framework_is_loaded(tmp_path: Path) -> None:
    """Frameworks are empty packages here."""
    for name in OTHERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    paths = [*(ROOT / "common").rglob("[!_]*.py"), *ROOT.glob("frameworks/*/__init__.py")]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    assert {"common.training.loop", "frameworks.jax.__init__"} <= {*modules}
    loaded = f"assert not {{*{(*OTHERS,)}}} & {{*sys.modules}}"
    lines = ["import sys", *(f"import {name}; {loaded}" for name in modules)]
    done = python("-c", "\n".join(lines), folder=tmp_path, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_record_depends_on_all_rooms_up_to_training_but_those_that_print_and_draw() -> None:
    below = ROOMS[: ROOMS.index("training") + 1]
    assert {*below} - {*record.ROOMS} == {"terminal", "drawing"}


def test_a_change_makes_records_stale_if_it_may_change_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "ROOT", tmp_path)
    files = [f"common/{room}/some.py" for room in record.ROOMS]
    files += ["common/training/deeper/some.py", "frameworks/strategies/zero.py"]
    files += ["frameworks/jax/scratch.py", "frameworks/chapters.py"]
    others = ["common/report/page.py", "common/parity.py", "frameworks/mxnet/scratch.py"]
    for path in [*files, *others]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for path in [*files, *others]:
        before = record.source_digest("jax")
        (tmp_path / path).write_text("\n")
        assert (record.source_digest("jax") != before) == (path in files), path
    assert record.source_digest("jax") != record.source_digest("mxnet")
