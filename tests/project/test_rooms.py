"""Rooms import only rooms above them; backends have the same functions in the same order."""

import ast
import re
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
    others = ["common/report/text.py", "common/parity.py", "frameworks/mxnet/scratch.py"]
    for path in [*files, *others]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for path in [*files, *others]:
        before = record.source_digest("jax")
        (tmp_path / path).write_text("\n")
        assert (record.source_digest("jax") != before) == (path in files), path
    assert record.source_digest("jax") != record.source_digest("mxnet")


LISTINGS = ("scratch", "concise", "gpt", "attention", "moe")

OF_THE_BOOK = (
    *("get_params", "layer", "lenet", "loss", "allreduce", "split_batch"),
    *("shard_loss_and_grad", "sgd", "train_batch"),
)
"""The functions of the listing from scratch, in this order, and no others."""

ON_DEVICES = {"tensorflow": ["step"], "jax": ["shard_loss", "one_program"]}
"""What runs on every device, before `forward_backward`: elsewhere it is an ordinary step."""

LONGEST = {"scratch": 120, "concise": 125, "gpt": 140, "moe": 85}
"""The most lines of a listing, so that it can be read in one sitting."""

NOT_OF_THE_BOOK = (
    r"everywhere|own|per_device|joined|placed|same_on_every_host|hosts?|options?|algorithms?"
)
"""Words of the harness, which the book's section does not have."""

SAME = ("layer", "lenet", "split_batch", "train_batch")
"""Functions with the same body in all listings from scratch."""


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef | None]:
    """A module's functions, in order."""
    by_name: dict[str, ast.FunctionDef | None] = {}
    for node in parsed(ROOT / "frameworks" / framework / f"{module}.py").body:
        if isinstance(node, ast.FunctionDef):
            by_name[node.name] = node
        if isinstance(node, ast.Assign):
            names = map(ast.unparse, node.targets)
            by_name |= {name: None for name in names if name.islower() and name != "__all__"}
    return by_name


def arguments(function: ast.FunctionDef) -> list[str]:
    """The arguments of a function, without defaults."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    # JAX pads its shards, so it also needs the number of examples.
    return [*map(ast.unparse, every)][: 2 if function.name == "scatter" else None]


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_listings_define_the_same_functions_in_the_same_order(backend: str) -> None:
    assert tuple(functions(backend, "scratch")) == OF_THE_BOOK
    for module in LISTINGS:
        ours, theirs = functions(backend, module), functions(FRAMEWORKS[0], module)
        extra = ON_DEVICES.get(backend, []) if module == "concise" else []
        assert [name for name in ours if name not in theirs] == extra
        assert [name for name in ours if name in theirs] == [*theirs]
        for name, function in ours.items():
            model = theirs.get(name)
            if function and model:
                assert arguments(function) == arguments(model), name
            if function and model and module == "scratch" and name in SAME:
                assert [*map(ast.unparse, function.body)] == [*map(ast.unparse, model.body)], name


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_functions_of_the_same_name_are_in_the_same_order(backend: str) -> None:
    folder = ROOT / "frameworks" / backend
    for path in folder.rglob("*.py"):
        module = str(path.relative_to(folder).with_suffix(""))
        for other in (x for x in FRAMEWORKS if (folder.parent / x / f"{module}.py").exists()):
            ours, theirs = functions(backend, module), functions(other, module)
            same = [name for name in ours if name in theirs]
            assert same == [name for name in theirs if name in ours], (module, other)


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_the_listing_from_scratch_has_only_what_the_book_knows(backend: str) -> None:
    folder = ROOT / "frameworks" / backend
    for module, most in LONGEST.items():
        lines = (folder / f"{module}.py").read_text().splitlines()
        assert 50 < len(lines) <= most
    allowed = ast.FunctionDef | ast.Import | ast.ImportFrom
    rest = [node for node in parsed(folder / "scratch.py").body if not isinstance(node, allowed)]
    docstring, command, *aliases = map(ast.unparse, rest)
    assert docstring.startswith(("'LeNet", '"LeNet')), docstring
    assert command.startswith("if __name__ == '__main__':")
    assert all(re.match(r"(Device|Tensor|Params)\b.* = ", alias) for alias in aliases)
    text = (folder / "scratch.py").read_text()
    assert re.findall(rf"\b({NOT_OF_THE_BOOK})\b", text, re.IGNORECASE) == []
