"""The backends have the same functions in the same order."""

import ast
import re
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2] / "frameworks"

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


def parsed(framework: str, module: str) -> list[ast.stmt]:
    return ast.parse((ROOT / framework / f"{module}.py").read_text()).body


def functions(framework: str, module: str) -> dict[str, ast.FunctionDef | None]:
    """A module's functions, in order."""
    by_name: dict[str, ast.FunctionDef | None] = {}
    for node in parsed(framework, module):
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
    for path in (ROOT / backend).rglob("*.py"):
        module = str(path.relative_to(ROOT / backend).with_suffix(""))
        for other in (name for name in FRAMEWORKS if (ROOT / name / f"{module}.py").exists()):
            ours, theirs = functions(backend, module), functions(other, module)
            same = [name for name in ours if name in theirs]
            assert same == [name for name in theirs if name in ours], (module, other)


@pytest.mark.parametrize("backend", FRAMEWORKS)
def test_the_listing_from_scratch_has_only_what_the_book_knows(backend: str) -> None:
    for module, most in LONGEST.items():
        lines = (ROOT / backend / f"{module}.py").read_text().splitlines()
        assert 50 < len(lines) <= most
    allowed = ast.FunctionDef | ast.Import | ast.ImportFrom
    rest = [node for node in parsed(backend, "scratch") if not isinstance(node, allowed)]
    docstring, command, *aliases = map(ast.unparse, rest)
    assert docstring.startswith(("'LeNet", '"LeNet')), docstring
    assert command.startswith("if __name__ == '__main__':")
    assert all(re.match(r"(Device|Tensor|Params)\b.* = ", alias) for alias in aliases)
    text = (ROOT / backend / "scratch.py").read_text()
    assert re.findall(rf"\b({NOT_OF_THE_BOOK})\b", text, re.IGNORECASE) == []
