"""Damaged and malicious files are read, or refused in one line."""

import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from common.base.errors import RequestError, RunError
from common.models.weights_file import load_arrays, load_weights
from common.pairs.runs import read_run
from common.records.record import digest, read_record, tensors_of
from common.training.checkpoints import read_checkpoint

JUNK = (b"", b"\0", b"\xff" * 8, b"{", b"[" * 20_000, pickle.dumps(print, protocol=0))
NUMBERS = (-1, 0, 2**31, 2**63, 2**64, 10**300, 0.5, float("nan"), float("inf"))
TEXTS = ("", "\0", "\ud800", "a" * 5000, "../outside.safetensors", "/etc/hostname", "F64", "ring")
VALUES: tuple[object, ...] = (None, True, *NUMBERS, *TEXTS, [], [[]] * 70, {}, {"": 1}, [2**60] * 9)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Each object or list in a JSON value, with each key or first indices."""
    keys = list(tree) if isinstance(tree, dict) else range(min(len(tree), 9))
    inner = [places(tree[key]) for key in keys if isinstance(tree[key], dict | list)]
    return [*((tree, key) for key in keys), *(place for found in inner for place in found)]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file with bytes removed or added, or another value in its JSON."""
    if draw(st.integers(0, 3)) == 0:
        start, end = (draw(st.integers(0, len(content))) for _ in range(2))
        return content[:start] + draw(st.sampled_from(JUNK)) + content[end:]
    tree = json.loads(content)
    holder, key = draw(st.sampled_from(places(tree)))
    holder[key] = draw(st.sampled_from(VALUES))
    return json.dumps(tree).encode()


def read_weights(record: Path) -> None:
    (path,) = record.parent.glob("*.safetensors")
    load_weights(path, {name: array.shape for name, array in load_arrays(path).items()}, "float32")


@pytest.mark.parametrize("read", [read_weights, read_run, read_checkpoint])
@settings(max_examples=100, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_file_is_read_or_refused(
    agreeing: Path, read: Callable[[Path], object], data: st.DataObject
) -> None:
    original = agreeing / "jax-scratch-2dev.json"
    record, tensors = original.read_bytes(), tensors_of(original).read_bytes()
    if read is read_checkpoint:
        record = record.replace(b'"complete"', b'"running"')
    if read is read_weights or data.draw(st.booleans()):
        end = 8 + int.from_bytes(tensors[:8], "little")
        header = data.draw(damaged(tensors[8:end]))
        size = data.draw(st.sampled_from([len(header)] * 9 + [0, 2**63, 2**64 - 1]))
        tensors = size.to_bytes(8, "little") + header + tensors[end:]
    else:
        record = data.draw(damaged(record))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "run.json")
        path.write_bytes(record)
        tensors_of(path).write_bytes(tensors)
        with suppress(RunError):  # a right digest lets more be read
            found = read_record(path)
            found = found.model_copy(update={"sha256": digest(path, found, tensors=True)})
            path.write_text(found.model_dump_json(by_alias=True))
        for name in ("load", "loads", "Unpickler"):
            patch.delattr(pickle, name)
        with suppress(RequestError, RunError):
            read(path)
