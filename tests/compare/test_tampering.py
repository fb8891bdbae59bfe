"""Whatever an honest user makes of a folder of records turns its verdict red."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from agreement import judge, make
from numpy_chapter import NumpyChapter

from common.base.errors import RunError
from common.records.record import Record
from common.records.store import read_record


def edited(path: Path, other: Path, random: Random) -> str:
    """Changes or removes one field of a record."""
    content = json.loads(path.read_text())
    holder, key, name = random.choice(list(_places(content)))
    before = holder.pop(key) if isinstance(key, str) else holder[key]
    if isinstance(key, int) or random.random() < 0.9:
        holder[key] = _another(before, random)
    path.write_text(json.dumps(content))
    return name


def _places(content: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every place in a record that holds a value."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield content, key, f"{name}.{key}"
        if isinstance(value, dict | list):
            yield from _places(value, f"{name}.{key}")


def _another(value: Any, random: Random) -> Any:
    """Another value, mostly of the same type."""
    others: list[Any] = [None, "", -1, [], 1e99]
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int | float):
        others += 3 * [value + 1, value * 1.01, -value or 1]
    elif isinstance(value, str):
        others += 6 * [f"{value}0", value[:-1]]
    elif isinstance(value, list):
        others += [value[:-1], [*value, *value[-1:]], value[:1] * len(value)]
    return random.choice([other for other in others if other != value])


def partial(path: Path, other: Path, random: Random) -> str:
    """Removes, cuts off, or changes a byte of a record or of its tensors."""
    path = random.choice([path, path.with_suffix(".safetensors")])
    how, content = random.choice(("removed", "cut off", "a byte")), bytearray(path.read_bytes())
    place = random.randrange(len(content))
    content[place] ^= 1 << random.randrange(8)
    path.unlink()
    if how != "removed":
        path.write_bytes(content[:place] if how == "cut off" else content)
    return f"{path.name} {how} at {place}"


def mixed(path: Path, other: Path, random: Random) -> str:
    """Puts another run, its record or its tensors in the place of one."""
    kinds = random.choice(((".json",), (".safetensors",), (".json", ".safetensors")))
    for kind in kinds:
        shutil.copy(other.with_suffix(kind), path.with_suffix(kind))
    return f"{kinds} of {other.name}"


def foreign(path: Path, other: Path, random: Random) -> str:
    """Makes the same run with another setting."""
    framework, _, devices = path.stem.removesuffix("dev").split("-")
    settings: list[dict[str, Any]] = [
        *({"seed": 1}, {"lr": 0.06}, {"dtype": "float32"}, {"batch_size": 9}),
        *({"steps": 3}, {"init_weights": None}, {"train_examples": 39}),
    ]
    chosen = random.choice(settings)
    make(path.parent, framework, NumpyChapter(), int(devices), **chosen)
    return str(chosen)


def test_whatever_becomes_of_a_record_is_seen(
    good: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    missed = []
    for number in range(pytestconfig.getoption("--tamperings")):
        random, folder = Random(number), tmp_path / str(number)
        shutil.copytree(good, folder)
        path, other = random.sample(sorted(folder.rglob("*dev.json")), 2)
        was = read_record(path)
        change = random.choice([edited, edited, partial, mixed, foreign])
        told = change(path, other, random)
        if judge(folder).passed and not _same(path, was):
            missed.append(f"{number}: {path.name} {change.__name__}: {told}")
        shutil.rmtree(folder)
    assert not missed


def _same(path: Path, was: Record) -> bool:
    """Whether a record says what it said."""
    try:
        return read_record(path) == was
    except RunError:
        return False
