"""Four listings are one text in four languages."""

import ast
import re
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

LONGEST = {"scratch": 116, "concise": 120}
"""The lines of a listing and of its start, which are read in one sitting."""

NOT_OF_THE_BOOK = (
    r"everywhere|own|per_device|joined|placed|same_on_every_host|hosts?|options?|algorithms?"
)
"""Words of the harness, of which the book's section knows nothing."""

SAME = ("lenet", "split_batch", "train_batch")
"""What the listings from scratch say in the same words, except for decorators."""


def parsed(framework: str, module: str) -> list[ast.stmt]:
    return ast.parse((ROOT / framework / f"{module}.py").read_text()).body


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef | None]:
    """A module's functions, in order."""
    found: dict[str, ast.FunctionDef | None] = {}
    for node in parsed(framework, module):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        if isinstance(node, ast.Assign):
            names = map(ast.unparse, node.targets)
            found |= {name: None for name in names if name.islower()}
    return found


def arguments(function: ast.FunctionDef) -> list[str]:
    """What a function takes, without defaults."""
    every = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
    # JAX pads its shards: it asks for the whole number, too.
    return [ast.unparse(each) for each in every][: 2 if function.name == "scatter" else None]


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_listings_define_the_same_functions_in_the_same_order(backend: str) -> None:
    for module, expected in LISTINGS.items():
        ours, theirs = functions(backend, module), functions(FRAMEWORKS[0], module)
        assert tuple(ours) == expected
        for name, function in ours.items():
            other = theirs[name]
            if function and other:
                assert arguments(function) == arguments(other), name
            if function and other and module == "scratch" and name in SAME:
                assert [*map(ast.unparse, function.body)] == [*map(ast.unparse, other.body)], name


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_the_listing_from_scratch_holds_what_the_book_knows_and_nothing_else(backend: str) -> None:
    for module, most in LONGEST.items():
        lines = (ROOT / backend / f"{module}.py").read_text().splitlines()
        assert 50 < len(lines) <= most
    allowed = ast.FunctionDef | ast.Import | ast.ImportFrom
    rest = [each for each in parsed(backend, "scratch") if not isinstance(each, allowed)]
    docstring, command, *aliases = map(ast.unparse, rest)
    assert docstring.startswith(("'LeNet", '"LeNet')), docstring
    assert command.startswith("if __name__ == '__main__':")
    assert [each for each in aliases if not re.match(r"(Device|Tensor|Params)\b.* = ", each)] == []
    text = (ROOT / backend / "scratch.py").read_text()
    assert re.findall(rf"\b({NOT_OF_THE_BOOK})\b", text, re.IGNORECASE) == []
