"""A chapter's four listings are one text in four languages: same files, same functions."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2] / "frameworks"

LISTINGS = {
    "scratch": (
        *("get_params", "lenet", "loss", "allreduce", "split_batch", "shard_loss_and_grad"),
        *("sgd", "train_batch"),
    ),
    "concise": ("replicate", "scatter", "loss", "forward_backward", "train_batch", "predict"),
    "replicas": ("gradients", "copies", "put", "activations"),
    "chapters": ("scratch", "concise", "strategies", "native"),
}
"""The functions of these modules, in this order, and no others."""

LONGEST = {"scratch": 122, "concise": 140}
"""The lines of a listing and of its start, which are read in one sitting."""

NOT_OF_THE_BOOK = (
    r"everywhere|own|everyones|joined|placed|keep_up|same_on_every_host|hosts?|options?|algorithms?"
)
"""Words of the harness, of which the book's section knows nothing."""

SAME = ("lenet", "split_batch", "train_batch")
"""What the listings from scratch say in the same words, except for decorators."""


def source(framework: str, module: str) -> str:
    return (ROOT / framework / f"{module}.py").read_text()


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef]:
    """The functions that a module defines at its top level, in order."""
    tree = ast.parse(source(framework, module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def names(framework: str, module: str) -> list[str]:
    """What a module calls its functions, in order: `loss` may be one that the framework has."""
    found = []
    for node in ast.parse(source(framework, module)).body:
        if isinstance(node, ast.FunctionDef):
            found.append(node.name)
        if isinstance(node, ast.Assign):
            found += [ast.unparse(each) for each in node.targets if ast.unparse(each).islower()]
    return found


def arguments(function: ast.FunctionDef) -> list[str]:
    """What a function takes, without defaults: each framework has wrappers of its own."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    found = [ast.unparse(argument) for argument in every]
    # JAX pads its shards: it asks for the whole number, too.
    return found[:2] if function.name == "scatter" else found


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_listings_define_these_functions_in_this_order(backend: str) -> None:
    for module, expected in LISTINGS.items():
        assert tuple(names(backend, module)) == expected
    for module, most in LONGEST.items():
        assert 50 < len(source(backend, module).splitlines()) <= most


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_the_listing_from_scratch_holds_what_the_book_knows_and_nothing_else(backend: str) -> None:
    text = source(backend, "scratch")
    allowed = ast.FunctionDef | ast.Import | ast.ImportFrom
    docstring, start, command, *aliases = (
        ast.unparse(node) for node in ast.parse(text).body if not isinstance(node, allowed)
    )
    assert docstring.startswith(("'LeNet", '"LeNet')), docstring
    assert start.startswith("if not __package__:")
    assert command.startswith("if __name__ == '__main__':")
    assert [each for each in aliases if not re.match(r"(Device|Tensor|Params)\b.* = ", each)] == []
    assert re.findall(rf"\b({NOT_OF_THE_BOOK})\b", text, re.IGNORECASE) == []


@pytest.mark.parametrize("module", LISTINGS)
def test_functions_of_a_name_take_the_same(module: str) -> None:
    for one, other in pairwise(FRAMEWORKS):
        ours, theirs = functions(one, module), functions(other, module)
        for name in ours.keys() & theirs.keys():
            assert arguments(ours[name]) == arguments(theirs[name]), (one, other, name)
            if module == "scratch" and name in SAME:
                texts = {tuple(map(ast.unparse, each.body)) for each in (ours[name], theirs[name])}
                assert len(texts) == 1, (one, other, name)
