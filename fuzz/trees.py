"""Mutations of JSON, as a tree of objects, lists and values."""

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

from fuzz import bytewise

Place = tuple[Any, Any]
"""An object or a list, and the key or index of something in it."""

NUMBERS: Final = (
    *(0, -1, 1, 2, 3, 10, 63, 64, 65, 255, 1024, 4097, 10**6, 2**31 - 1, 2**31, 2**32 - 1, 2**53),
    *(2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**300),
    *(-0.0, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")),
)

TEXTS: Final = (
    *("", "0", "\0", "\ud800", "\ufeff", "\u202e", "a" * 5000, "é", "\ufb01", "\uff49\uff46", "if"),
    *(
        "../outside",
        "../outside.safetensors",
        "/etc/hostname",
        "/proc/self/environ",
        "..",
        ".",
        "/",
    ),
    *("run.json", "a/../../outside", "x" * 300, "a\0b", "~", "file:///etc/hostname", "\\\\a\\b"),
    *("self", "__class__", "__dataclass_self__", "__dataclass_builtins_object__", "__slots__"),
    *(
        "__init__",
        "__post_init__",
        "{0}",
        "%s",
        "%n",
        "\x1b[31m",
        "\r\n",
        "cos\nsystem\n(S'true'\ntR.",
    ),
    *(
        "scratch",
        "concise",
        "toy",
        "jax",
        "cpu",
        "cpu:0",
        "float64",
        "float32",
        "complete",
        "native",
    ),
    *("ring", "star", "tree", "halving", "sharded", "linear", "width", "allreduce", "1e5", "NaN"),
    *("F64", "F32", "F16", "BF16", "F8_E4M3", "F4", "I64", "U8", "BOOL", "C64", "__metadata__"),
    *("dtype", "shape", "data_offsets", "conv1.bias", "weight", "trace/weights/0/w", "test/labels"),
)

RAW: Final = {
    "@digits": "1" * 5000,
    "@exponent": "1e99999",
    "@nested": "[" * 600 + "]" * 600,
    "@objects": '{"a":' * 300 + "1" + "}" * 300,
    "@open": "[" * 20_000,
    "@zeros": "0" * 40,
    "@lone": '"\\ud800"',
    "@null": '"\\u0000"',
    "@many": "[" + "0," * 9999 + "0]",
}
"""What `json` would not write, by the name that stands for it in a tree."""


def change(content: bytes, rng: Random) -> bytes:
    """A file of JSON with some of its tree changed; without a tree, with some of its bytes."""
    if rng.random() < 0.05:
        return bytewise.change(content, rng)
    try:
        tree = json.loads(content)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            tree = changed(tree, rng)
        return written(tree, rng)
    except (ValueError, RecursionError):
        return bytewise.change(content, rng)


def changed(tree: Any, rng: Random) -> Any:
    """A tree with one place of it changed; it may be changed itself."""
    if not tree or not isinstance(tree, dict | list) or rng.random() < 0.01:
        return some_value(tree, rng)
    _change_at(_some_place(tree, rng), tree, rng)
    return tree


def some_value(tree: Any, rng: Random) -> Any:
    """A value from nowhere, or from elsewhere in the tree."""
    how = rng.randrange(6)
    if how == 0 and tree and isinstance(tree, dict | list):
        holder, key = _some_place(tree, rng)
        return deepcopy(holder[key])  # no tree holds itself
    if how == 1:
        return rng.choice((None, True, False, [], {}, [[]], {"": {}}))
    if how == 2:
        return rng.choice(list(RAW))
    return rng.choice(NUMBERS if how < 5 else TEXTS)


def written(tree: Any, rng: Random) -> bytes:
    """The tree as JSON, now and then with a key twice."""
    text = json.dumps(tree, ensure_ascii=rng.random() < 0.7)
    if "@" in text:
        for name, raw in RAW.items():
            text = text.replace(f'"{name}"', raw)
    if rng.random() < 0.03:
        cut = rng.randrange(len(text) + 1)
        comma = text.rfind(",", 0, cut)
        text = text[:cut] + text[comma:cut] + text[cut:]
    return text.encode("utf-8", "surrogatepass")


def _some_place(tree: Any, rng: Random) -> Place:
    """A place in a tree that has some."""
    while True:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        inside = tree[key]
        if not inside or not isinstance(inside, dict | list) or rng.random() < 0.2:
            return tree, key
        tree = inside


def _places(tree: Any) -> Iterator[Place]:
    """Every place in a tree, of which the longest lists show but a few."""
    waiting = [tree] if isinstance(tree, dict | list) else []
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            inside: list[Place] = [(each, key) for key in each]
        else:
            inside = [(each, index) for index in range(min(len(each), 20))]
        yield from inside
        waiting += [holder[key] for holder, key in inside if isinstance(holder[key], dict | list)]


def _change_at(place: Place, tree: Any, rng: Random) -> None:
    holder, key = place
    value, how = holder[key], rng.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[rng.choice(TEXTS)] = holder.pop(key) if rng.random() < 0.5 else value
    elif how == 2 and isinstance(value, list):
        _resize(value, tree, rng)
    elif how == 3 and isinstance(value, int | float):
        holder[key] = rng.choice(
            (value + 1, value - 1, -value, value * 2, float(value), str(value))
        )
    elif how == 4:
        holder[key] = rng.choice(([value], {"a": value}, str(value)))
    elif how == 5 and isinstance(holder, list):
        holder.insert(key, some_value(tree, rng))
    elif isinstance(value, str) and how == 6:
        holder[key] = value + rng.choice(TEXTS)
    else:
        holder[key] = some_value(tree, rng)


def _resize(values: list[Any], tree: Any, rng: Random) -> None:
    """Another length of a list, told wherever the old one is: so it may still be believed."""
    simple = values and not isinstance(values[-1], dict | list)  # many large ones would not end
    before, after = len(values), rng.choice((0, 1, 2, 3, 65, 1000, 5000) if simple else (0, 1))
    more = [_numbered(values[-1], number) for number in range(before, after)] if simple else []
    values[:] = [*values[:after], *more]
    if rng.random() < 0.7:
        for holder, key in list(_places(tree)):
            if holder[key] == before and type(holder[key]) is int:
                holder[key] = after


def _numbered(value: Any, number: int) -> Any:
    """A value of a list once more; texts differ, as names of devices do."""
    return f"{value.rstrip('0123456789')[:20]}{number}" if isinstance(value, str) else value
