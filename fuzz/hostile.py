"""Hostile files, as Hypothesis draws them: good ones changed, and headers that promise too much."""

import json
import pickle
import struct
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from hashlib import sha256
from typing import Any, Final

from hypothesis import strategies as st

from common.records.record import Record
from common.records.store import seal
from fuzz.seeds import Files

TENSORS: Final = "run.safetensors"
"""The name of a run's tensors, beside its record."""

ELSEWHERE: Final = ("../outside.safetensors", "/etc/hostname", "run.json", "", "\0", "x" * 300)
"""Names of tensors that are not beside their record, or are none."""

Draw = st.DrawFn

PICKLED: Final = (b"cos\ngetcwd\n(tR.", pickle.dumps(print, protocol=4))
"""Harmless things that only a reader that unpickles would make."""

WORDS: Final = (b"", b"\0", b"\xff", b"\xff" * 8, b"{", *PICKLED)

EDGES: Final = (0, 1, *(2**bits - less for bits in (31, 32, 60, 63, 64) for less in (0, 1)))
"""Where lengths overflow, or promise too much."""

NOT_FINITE: Final = (float("nan"), float("inf"))

NUMBERS: Final = (-1, 2, 3, 65, 10**6, 10**300, -(2**63), *EDGES, 0.5, 1e308, *NOT_FINITE)

TEXTS: Final = (
    *("", "\0", "\ud800", "\u202e", "\uff49\uff46", "if", "a" * 5000, "\x1b[31m", "__class__"),
    *("../outside.safetensors", "/etc/hostname", "/dev/zero", "..", "run.json", "cpu:0", "float64"),
    *("scratch", "concise", "complete", "running", "ring", "width", "conv1.bias", "w", "dtype"),
    *("trace/weights/0/w", "test/labels", "__metadata__"),
)

RAW: Final = {
    "@digits": "1" * 5000,
    "@exponent": "1e99999",
    "@objects": '{"a":' * 300 + "1" + "}" * 300,
    "@open": "[" * 20_000,
    "@many": "[" + "0," * 9999 + "0]",
    "@twice": '{"a": 1, "a": 2}',
}
"""What `json` would not write, by the name that stands for it in a tree."""

DTYPES: Final = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F4", "I64", "U8", "BOOL", "C64")

texts = st.sampled_from(TEXTS) | st.text(max_size=9)
leaves = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), texts, st.sampled_from(sorted(RAW))
)
values = leaves | st.lists(leaves, max_size=2) | st.dictionaries(texts, leaves, max_size=2)


@st.composite
def changed_bytes(draw: Draw, content: bytes) -> bytes:
    """Some bytes changed, cut out, put in, repeated or cut off; or a pickle in place of all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(PICKLED))
    place = st.integers(0, len(content))
    start, end = draw(place), draw(place)
    return content[:start] + draw(st.sampled_from(WORDS) | st.binary(max_size=9)) + content[end:]


@st.composite
def changed_json(draw: Draw, content: bytes) -> bytes:
    """A file of JSON with some of its tree changed, or some of its bytes."""
    if draw(st.integers(0, 19)) == 0:
        return draw(changed_bytes(content))
    tree = json.loads(content)
    for _ in range(draw(st.integers(1, 3))):
        if places := list(_places(tree)):
            _change(draw, places)
    text = json.dumps(tree)
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text.encode()


@st.composite
def changed_tensors(draw: Draw, content: bytes) -> bytes:
    """A file of tensors with another header or length of it, or one tensor of any kind alone."""
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    how = draw(st.integers(0, 9))
    if how == 0:
        return draw(changed_bytes(content))
    if how < 5:
        body = bytes(draw(st.sampled_from((0, 1, 4, 8, 16, 64))))
        shape = st.lists(st.sampled_from((0, 1, 2, 3, 4, 2**31, 2**60, 2**63)), max_size=4)
        one = {
            "dtype": draw(st.sampled_from(DTYPES)),
            "shape": draw(shape | st.sampled_from(([1] * 33, [1] * 65))),
            "data_offsets": [0, len(body)],
        }
        header = json.dumps({draw(texts): one}).encode()
    else:
        header = draw(changed_json(header))
    size = draw(st.sampled_from(EDGES)) if how == 9 else len(header)
    return struct.pack("<Q", size % 2**64) + header + body


@st.composite
def changed_lines(draw: Draw, files: Files) -> Files:
    """A file that has JSON in each line, with one of them changed."""
    lines = files[0].splitlines(keepends=True)
    place = draw(st.integers(0, len(lines) - 1))
    lines[place] = draw(changed_json(lines[place]))
    return (b"".join(lines),)


@st.composite
def changed_run(draw: Draw, files: Files) -> Files:
    """A record or its tensors changed, and mostly the digests that follow from them."""
    record, tensors = files
    if draw(st.booleans()):
        record = draw(changed_json(record))
    else:
        tensors = draw(changed_tensors(tensors))
    if draw(st.integers(0, 3)):
        name = draw(st.sampled_from((*[TENSORS] * 9, *ELSEWHERE)))
        with suppress(Exception):  # the reader has to see what is wrong with it
            tree = json.loads(record)
            tree["tensors"] = {"file": name, "sha256": sha256(tensors).hexdigest()}
            tree["sha256"] = seal(Record.model_validate(tree))
            record = json.dumps(tree).encode()
    return record, tensors


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every object or list in a tree with every key or index of it, of long lists but a few."""
    inside = list(tree) if isinstance(tree, dict) else range(min(len(tree), 20))
    for key in inside:
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _change(draw: Draw, places: list[tuple[Any, Any]]) -> None:
    holder, key = draw(st.sampled_from(places))
    value, how = holder[key], draw(st.integers(0, 5))
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[draw(texts)] = holder.pop(key)
    elif how == 2 and isinstance(value, int | float):
        holder[key] = draw(st.sampled_from((value + 1, value - 1, -value, value * 2, str(value))))
    elif how == 3:
        other, name = draw(st.sampled_from(places))
        holder[key] = deepcopy(other[name])
    else:
        holder[key] = draw(values)
