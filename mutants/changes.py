"""Small changes of a source: other operators, constants, conditions, slices and arguments."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

OTHER: Final[dict[type[ast.AST], type[ast.AST]]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.MatMult: ast.Mult, ast.USub: ast.UAdd},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.And: ast.Or},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Or: ast.And},
}
"""What replaces an operator; most uses of `|` are types."""
GUARDS: Final = ("strict", "frozen")
"""Arguments that change nothing but what a mistake does."""


@dataclass(frozen=True)
class Mutant:
    """A source with a change in a line of a file: `words` are for people."""

    path: str
    line: int
    words: str
    source: str


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Every change of a source that compiles to other instructions."""
    tree, lines = ast.parse(source), source.splitlines()
    seen = [instructions(compile(tree, path, "exec"))]
    for node in evaluated(tree):
        for field, value in changes(node):
            right, before = getattr(node, field), ast.unparse(node)
            setattr(node, field, value)
            after, changed = ast.unparse(node), ast.unparse(tree)
            setattr(node, field, right)
            if (code := instructions(compile(changed, path, "exec"))) not in seen:
                seen.append(code)
                pair = " => ".join(x.partition("\n")[0] for x in (before, after))
                words = f"{path}:{node.lineno}: {lines[node.lineno - 1].strip()}  [{pair}]"
                yield Mutant(path, node.lineno, words, changed)


def instructions(code: CodeType) -> tuple[Any, ...]:
    """A module or function as it is run: without the places of its lines."""
    constants = [instructions(x) if isinstance(x, CodeType) else repr(x) for x in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def evaluated(node: ast.AST) -> Iterator[Any]:
    """The nodes that decide what a run does: no annotations, and no guards."""
    yield node
    types = getattr(node, "annotation", None), getattr(node, "returns", None)
    for child in ast.iter_child_nodes(node):
        if child not in types and getattr(child, "arg", "") not in GUARDS:
            yield from evaluated(child)


def changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """The changes of a node: a field, and its other value."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER:
            yield "ops", [OTHER[type(operator)]()]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) | ast.UnaryOp(op=op):
            yield from (("op", other()) for one, other in OTHER.items() if isinstance(op, one))
        case ast.Constant(value=int(value) | float(value)):
            yield "value", not value if isinstance(value, bool) else value + 1
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "test", ast.UnaryOp(ast.Not(), test)
        case ast.Slice():
            yield from ((name, None) for name in ("lower", "upper") if getattr(node, name))
        case ast.Expr(value=ast.Call()):
            yield "value", ast.Constant(None)
        case ast.Call(func=ast.Attribute(value=owner), args=[], keywords=[]):
            yield "func", ast.parse(f"lambda: {ast.unparse(owner)}", mode="eval").body
        case ast.Call(args=[_], keywords=[]):
            yield "func", ast.parse("lambda x: x", mode="eval").body
        case ast.Call(args=args, keywords=keywords):
            yield "args", [*args[1::-1], *args[2:]]
            for left_out in (keyword for keyword in keywords if keyword.arg not in GUARDS):
                yield "keywords", [keyword for keyword in keywords if keyword is not left_out]
