"""The rooms of `common/`, and of `notebooks/`, stand in one order, and imports run one way."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("base", "terminal", "data", "models", "parallel", "backends", "hosts", "chapters"),
    *(
        "settings",
        "records",
        "training",
        "compare",
        "pairs",
        "diagnose",
        "seeds",
        "report",
        "scaling",
    ),
)
"""Lowest first: a room imports itself and those before it."""

LESSONS = ("drawing", "text", "classroom", "exercises", "web")
"""The rooms of `notebooks/`, lowest first."""

BACKENDS = {"base", "models", "parallel", "backends", "chapters"}
"""What a backend imports of `common/`, but for the command in its `__main__` block."""


def imported(path: Path, package: str = "common") -> Iterator[tuple[ast.ImportFrom, str]]:
    """Every import of a package of the project in a file, and the module's name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package:
            yield node, node.module or ""
        if isinstance(node, ast.Import):
            assert not any(each.name.startswith(package) for each in node.names), path


def room(module: str) -> str:
    """The room of a module; empty for a command."""
    return next((name for name in module.split(".")[1:2] if name in ROOMS), "")


def test_every_folder_is_a_room() -> None:
    folders = {path.parent.relative_to(ROOT / "common") for path in ROOT.glob("common/**/*.py")}
    assert {str(folder) for folder in folders} == {".", *ROOMS}


@pytest.mark.parametrize("name", ROOMS)
def test_imports_run_down(name: str) -> None:
    allowed = set(ROOMS[: ROOMS.index(name) + 1])
    for path in (ROOT / "common" / name).rglob("*.py"):
        for _, module in imported(path):
            assert room(module) in allowed, f"{path}: {module}"


@pytest.mark.parametrize("name", LESSONS)
def test_imports_of_notebooks_run_down(name: str) -> None:
    allowed = set(LESSONS[: LESSONS.index(name) + 1])
    for path in (ROOT / "notebooks" / name).rglob("*.py"):
        for _, module in imported(path, "notebooks"):
            assert module.split(".")[1] in allowed, f"{path}: {module}"


def test_nothing_rests_on_notebooks() -> None:
    for folder in ("common", "frameworks", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            assert list(imported(path, "notebooks")) == [], path


@pytest.mark.parametrize("name", ROOMS)
def test_the_docstring_of_a_room_is_all_that_its_init_holds(name: str) -> None:
    tree = ast.parse((ROOT / "common" / name / "__init__.py").read_text())
    assert ast.get_docstring(tree)
    assert len(tree.body) == 1


def test_backends_import_what_is_theirs() -> None:
    for path in (ROOT / "frameworks").rglob("*.py"):
        main = {
            node
            for block in ast.parse(path.read_text()).body
            if isinstance(block, ast.If) and ast.unparse(block.test) == "__name__ == '__main__'"
            for node in ast.walk(block)
        }
        lines = {node.lineno for node in main if isinstance(node, ast.ImportFrom)}
        for node, module in imported(path):
            assert room(module) in BACKENDS or node.lineno in lines, f"{path}: {module}"


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_imports_of_a_backend_run_one_way(backend: str) -> None:
    package = f"frameworks.{backend}"
    needs = {
        path.stem: {
            module.removeprefix(f"{package}.")
            for _, module in imported(path, "frameworks")
            if module.startswith(f"{package}.")
        }
        for path in (ROOT / "frameworks" / backend).glob("[!_]*.py")
    }
    order = list(TopologicalSorter(needs).static_order())  # CycleError if there is a circle
    assert {"scratch", "concise"} <= set(order) == set(needs)
