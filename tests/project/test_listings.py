"""A chapter's four listings are one text in four languages: same files, same functions."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2] / "frameworks"

FILES = {"scratch": ("devices", "collectives", "kernels", "scratch")}
"""The modules of each chapter, the listing last. A chapter that is not named here is not held."""

SAME = {
    "scratch": (
        *("replicate", "lenet", "split_batch", "sum_gradients", "forward_backward", "train_batch"),
    )
}
"""What each listing says in the same words, but for decorators."""

OPERATIONS = ("images", "conv2d", "relu", "avg_pool2d", "dense")
"""What LeNet is written in; each framework's `kernels.py` begins with them."""


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef]:
    """The functions that a module defines at its top level, in order."""
    tree = ast.parse((ROOT / framework / f"{module}.py").read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("chapter", FILES)
def test_every_framework_has_the_same_files(chapter: str) -> None:
    for framework in FRAMEWORKS:
        assert [
            name for name in FILES[chapter] if not (ROOT / framework / f"{name}.py").exists()
        ] == []


@pytest.mark.parametrize("chapter", FILES)
def test_listings_define_the_same_functions_in_the_same_order(chapter: str) -> None:
    for one, other in pairwise(FRAMEWORKS):
        assert list(functions(one, chapter)) == list(functions(other, chapter)), (one, other)


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
