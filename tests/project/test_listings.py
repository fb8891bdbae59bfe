"""A chapter's four listings are one text in four languages: same files, same functions."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2] / "frameworks"

FILES = {
    "scratch": ("devices", "collectives", "kernels", "scratch"),
    "concise": ("layouts", "batch_norm", "resnet", "wrappers", "activations", "concise"),
}
"""The modules of each chapter, the listing last. A chapter that is not named here is not held."""

SAME = {
    "scratch": (
        *("replicate", "lenet", "split_batch", "sum_gradients", "forward_backward", "train_batch"),
    ),
    "concise": ("predict",),
}
"""What each listing says in the same words, but for decorators."""

OPERATIONS = ("images", "conv2d", "relu", "avg_pool2d", "dense")
"""What LeNet is written in; each framework's `kernels.py` begins with them."""


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef]:
    """The functions that a module defines at its top level, in order."""
    tree = ast.parse((ROOT / framework / f"{module}.py").read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def names(framework: str, module: str) -> list[str]:
    """What a module calls its functions, in order: `loss` may be one that the framework has."""
    tree = ast.parse((ROOT / framework / f"{module}.py").read_text())
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        if isinstance(node, ast.Assign):
            found += [ast.unparse(each) for each in node.targets if ast.unparse(each).islower()]
    return found


def arguments(function: ast.FunctionDef) -> list[str]:
    """What a function takes, without defaults: each framework has wrappers of its own."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    return [ast.unparse(argument) for argument in every]


def modules(framework: str) -> set[str]:
    """What is imported anywhere in a backend, but by its `__init__`."""
    found: set[str] = set()
    for path in (ROOT / framework).glob("[!_]*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                found |= {node.module or "", *(f"{node.module}.{each.name}" for each in node.names)}
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
    return found


@pytest.mark.parametrize("chapter", FILES)
def test_every_framework_has_the_same_files(chapter: str) -> None:
    for framework in FRAMEWORKS:
        assert [
            name for name in FILES[chapter] if not (ROOT / framework / f"{name}.py").exists()
        ] == []


@pytest.mark.parametrize("chapter", FILES)
def test_listings_define_the_same_functions_in_the_same_order(chapter: str) -> None:
    for one, other in pairwise(FRAMEWORKS):
        assert names(one, chapter) == names(other, chapter), (one, other)


@pytest.mark.parametrize("chapter", FILES)
def test_functions_of_a_name_take_the_same(chapter: str) -> None:
    for one, other in pairwise(FRAMEWORKS):
        ours, theirs = functions(one, chapter), functions(other, chapter)
        for name in ours.keys() & theirs.keys():
            assert arguments(ours[name]) == arguments(theirs[name]), (one, other, name)


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_what_a_listing_is_made_of_does_not_import_it(backend: str) -> None:
    assert not modules(backend) & {f"frameworks.{backend}.{chapter}" for chapter in FILES}


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_what_listings_are_made_of_has_the_same_names(backend: str) -> None:
    assert {"from_canonical", "to_canonical", "on_host"} <= functions(backend, "layouts").keys()
    assert names(backend, "activations") == ["layer_outputs"]


@pytest.mark.parametrize(
    ("chapter", "name"), [(chapter, name) for chapter, names in SAME.items() for name in names]
)
def test_what_needs_no_framework_is_the_same_text(chapter: str, name: str) -> None:
    first, *others = (functions(framework, chapter)[name] for framework in FRAMEWORKS)
    for other in others:
        assert ast.unparse(other.args) == ast.unparse(first.args)
        assert [ast.unparse(line) for line in other.body] == [
            ast.unparse(line) for line in first.body
        ]


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_kernels_begin_with_what_lenet_is_written_in(backend: str) -> None:
    assert tuple(functions(backend, "kernels"))[: len(OPERATIONS)] == OPERATIONS
    called = {
        node.func.id
        for node in ast.walk(functions(backend, "scratch")["lenet"])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called == set(OPERATIONS)
