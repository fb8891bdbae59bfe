"""Whatever is changed in a folder of records turns its verdict red, or is known to be harmless."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import numpy_chapter
import numpy_concise
import pytest
from agreement import judge, make, reseal
from safetensors.numpy import load_file, save_file

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.base.files import sha256
from common.chapters.chapters import SPECS, SUITES
from common.chapters.suites import Suite
from common.compare import numpy_nets
from common.compare.checks import Run, allowed
from common.compare.distances import largest
from common.compare.taken import taken
from common.pairs.runs import read_run
from common.records.fingerprint import source_digest
from common.records.store import read_record
from common.records.trace import traced_steps

WAYS: Final = ("entry", "entry", "entry", "nan", "dtype", "turned", "gone", "more", "swap")
"""How a tensor is changed."""

ROUNDING: Final = "less than rounding does to a sum that nearly cancels"

HARMLESS: Final = {
    "command": "what was typed; the configuration says what was done",
    "started": "a time; whether a record is stale, its code's digest says",
    "machine": "where a run was; nothing is compared with it",
    "versions": "which packages were there; nothing is compared with them",
    "peak_memory": "a figure of speed and size; nothing is compared with it",
    "config.threads": "how many threads computed decides rounding alone",
    "config.deterministic": "which kernels a GPU computes with decides rounding alone",
    "devices": "a device's name, where no two have the same and all are of one kind",
    "cluster": "which host had which devices; its figures and names are compared with nothing",
    "config.init_weights": "a file's name; the weights are known by their digest",
    "tensor layers": "compared with --layers alone",
    "tensor test.predictions": "one wrong class for another: the accuracy is the same",
}
"""Fields that may say something else, sealed again, without a number or a setting being another."""


@dataclass(frozen=True)
class Change:
    """A change of one file, in words.

    Of a record's field it has the path, with * for a place in a list, whether the record was sealed
    again, and why it says the same as before, if it does.
    """

    path: Path
    text: str
    field: str = ""
    sealed: bool = False
    same: str = ""

    @property
    def chapter(self) -> str:
        """The chapter whose verdict rests on the file."""
        return self.path.stem.split("-")[1]

    def harmless(self) -> str:
        """Why this change may pass; empty if it must not."""
        if self.same:
            return self.same
        found = [name for name in HARMLESS if f"{self.field}.".startswith(f"{name}.")]
        return HARMLESS[found[0]] if found and self.sealed else ""


def tamper(folder: Path, random: Random) -> Change:
    """Changes one thing in a folder of records."""
    return random.choice([field, field, tensor, tensor, exchange, cut])(folder, random)


def freed(path: Path) -> Path:
    """`path`, to be written: other folders may share the file that was there."""
    path.unlink()
    return path


def records(folder: Path) -> list[Path]:
    """All records below a folder."""
    return sorted(folder.rglob("*dev.json"))


def field(folder: Path, random: Random) -> Change:
    """Changes, adds or removes one field of one record, which may be sealed again."""
    path = random.choice(records(folder))
    content, was = json.loads(path.read_text()), read_record(path)
    holder, key, name = random.choice(list(_leaves(content)))
    before = holder[key]
    if random.random() < 0.1:
        del holder[key]
        after: Any = "nothing"
    else:
        after = holder[key] = _other(before, random)
    freed(path).write_text(json.dumps(content))
    sealed = random.random() < 0.7 and reseal(path)
    text = f"{path.relative_to(folder)}: {name} was {before!r:.60}, is {after!r:.60}"
    text += ", sealed again" if sealed else ""
    try:
        same = "a field that was left out, and counts as it was" * (read_record(path) == was)
        return Change(path, text, name, sealed, same)
    except RunError:
        return Change(path, text, name)


def _leaves(content: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every place in a record that holds a value: its holder, its key there, and its path."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        path = f"{name}.{key if isinstance(content, dict) else '*'}".strip(".")
        yield content, key, path
        if isinstance(value, dict | list):
            yield from _leaves(value, path)


def _other(value: Any, random: Random) -> Any:
    """Another value, mostly of the same type."""
    others: list[Any] = [None, "", -1, [], 1e99]
    if isinstance(value, bool):
        others = [not value]
    elif isinstance(value, int):
        others += 3 * [value + 1, value * 2, value - 1]
    elif isinstance(value, float):
        others += 3 * [value * 1.01, value + 1e-3, -value or 1.0]
    elif isinstance(value, str) and value:
        others += 6 * [value[:-1] + ("0" if value[-1] != "0" else "1")]
        others += [value.replace("float64", "float32").replace("sync", "per-device") + "x"]
    elif isinstance(value, list) and value:
        others += [value[:-1], [*value, value[-1]], value[:1] * len(value)]
    return random.choice([other for other in others if other != value])


def tensor(folder: Path, random: Random) -> Change:
    """Changes, adds or removes one tensor of one record, which may vouch for it."""
    path = random.choice(records(folder))
    beside = path.with_suffix(".safetensors")
    tensors = load_file(beside)
    name, how, same = random.choice(sorted(tensors)), random.choice(WAYS), ""
    values = tensors[name].copy()
    if how == "entry":
        off = 1 if values.dtype == np.uint8 else 0.01 * (largest(values) or 1.0)
        values.flat[random.randrange(values.size)] += off
        same = ROUNDING * is_rounding(path, name, off)
    elif how == "nan" and values.dtype.kind == "f":
        values.flat[0] = np.nan
    elif how == "dtype":
        values = values.astype(np.float16)
    elif how == "swap":
        other = random.choice([k for k in tensors if not np.array_equal(tensors[k], values)])
        values = tensors[other].copy()
        how = f"{how} with {other}"
    else:
        values = values.reshape(-1, 1)
    tensors[f"{name}.more" if how == "more" else name] = values
    kept = {k: np.ascontiguousarray(v) for k, v in tensors.items() if (k, how) != (name, "gone")}
    save_file(kept, freed(beside))
    vouched = random.random() < 0.8 and vouch(path)
    text = f"{path.relative_to(folder)}: tensor {name}, {how}{', vouched for' if vouched else ''}"
    return Change(path, text, f"tensor {name.replace('/', '.')}", vouched, same if vouched else "")


def vouch(path: Path) -> bool:
    """Makes a record vouch for the tensors beside it, and seals it."""
    content = json.loads(path.read_text())
    beside = path.with_suffix(".safetensors")
    content["tensors"] = {"file": beside.name, "sha256": sha256(beside)}
    freed(path).write_text(json.dumps(content))
    return reseal(path)


def is_rounding(path: Path, name: str, off: float) -> bool:
    """Whether rounding alone may move an entry so far, of a first gradient or of weights in a step.

    What is added up in its gradient says so, not the sum, which may be a thousandth of it.
    """
    part, _, parameter = name.rpartition("/")
    if part not in {"gradients", "weights"} and not part.startswith("trace/weights/"):
        return False
    run = read_run(path)
    if part == "gradients":
        return off <= most(run, "gradient", 1, parameter)
    at = len(run.record.losses) if part == "weights" else int(part.removeprefix("trace/weights/"))
    steps = {at, at + 1} & set(traced_steps(run.record.config))
    return bool(steps) and all(off <= most(run, "update", step, parameter) for step in steps)


def most(run: Run, kind: str, number: int, parameter: str) -> float:
    """How far rounding may move a gradient that nearly cancels, or its weight in a step; else 0."""
    step = taken(run, number)
    right = numpy_nets.step(step.chapter, step.X, step.y, step.before, step.shards)
    rate = step.lr if kind == "update" else 1
    return rate * allowed(run)[kind].limit * right.added.get(parameter, 0.0)


def exchange(folder: Path, random: Random) -> Change:
    """Puts one record, with its tensors, in the place of another, perhaps under its name."""
    ours, theirs = random.sample(records(folder), 2)
    for kind in (".json", ".safetensors"):
        shutil.copy(theirs.with_suffix(kind), freed(ours.with_suffix(kind)))
    forged = random.random() < 0.7
    if forged:
        framework, chapter, rest = ours.stem.split("-", 2)
        content, devices = json.loads(ours.read_text()), int(rest.removesuffix("dev"))
        own = {"framework": framework, "chapter": chapter}
        content |= own | {"source_sha256": source_digest(framework)}
        content["config"] |= own
        if random.random() < 0.7:
            content["config"]["devices"] = devices
            content["devices"] = [f"numpy:{index}" for index in range(devices)]
        ours.write_text(json.dumps(content))
        vouch(ours)
    text = f"{theirs.relative_to(folder)} in the place of {ours.relative_to(folder)}"
    return Change(ours, f"{text}{', under its name' if forged else ''}", "exchange")


def cut(folder: Path, random: Random) -> Change:
    """Removes, cuts off, or changes a byte of one file."""
    path = random.choice(sorted(each for each in folder.rglob("*") if each.is_file()))
    how, content = random.choice(("removed", "cut off", "a byte")), bytearray(path.read_bytes())
    place = random.randrange(len(content))
    if how == "a byte":
        content[place] ^= 1 << random.randrange(8)
    freed(path)
    if how != "removed":
        path.write_bytes(content[:place] if how == "cut off" else content)
    return Change(path, f"{path.relative_to(folder)}: {how}", "bytes")


SMALL = {"batch_size": 4, "steps": 2, "train_examples": 7, "test_examples": 5}


def small(suite: Suite) -> Suite:
    """A suite as it is, but for its size."""
    width = {"width": 1} if suite.chapter == "concise" else {}
    settings = {name: value for name, value in suite.settings.items() if name != "preset"}
    return replace(suite, devices=(1, 2), settings={**settings, **SMALL, **width, "seed": 0})


CHOSEN = ("quick", "float64", "float32", "ring", "float64-per-device", "float32-sync")
PLANNED = [small(suite) for suite in SUITES if suite.name in CHOSEN]


def run(folder: Path, suite: Suite, framework: str, devices: int) -> None:
    """Makes one record of a suite."""
    concise = suite.chapter == "concise"
    preset = "quick" if concise else "book"
    settings: dict[str, Any] = {"dtype": "float32", "init_weights": None, "preset": preset}
    settings |= {"lr": SPECS[suite.chapter].presets[preset].lr, **suite.settings}
    if concise:
        settings.setdefault("batch_norm", "per-device")
    backend = numpy_concise.NumpyConcise() if concise else numpy_chapter.NumpyChapter()
    place = folder / suite.folder
    place.mkdir(parents=True, exist_ok=True)
    make(place, framework, backend, devices, chapter=suite.chapter, **settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every record of all suites."""
    folder = tmp_path_factory.mktemp("whole")
    for suite, framework, devices in product(PLANNED, FRAMEWORKS, (1, 2)):
        run(folder, suite, framework, devices)
    return folder


@pytest.fixture(autouse=True)
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small suites in the place of the project's."""
    for module in ("planned", "folder"):
        monkeypatch.setattr(f"common.compare.{module}.SUITES", PLANNED)


def test_the_whole_folder_passes(whole: Path) -> None:
    verdict = judge(whole, suites=())
    assert verdict.passed
    assert len(verdict.comparisons) == len(PLANNED)


def test_what_is_changed_is_seen(
    whole: Path, tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: Counter[str] = Counter()
    missed = []
    for number in range(pytestconfig.getoption("--tamperings")):
        folder = tmp_path / "changed"
        shutil.copytree(whole, folder, copy_function=_link)
        change = tamper(folder, Random(number))
        try:
            passed = judge(folder, chapters=[change.chapter], suites=()).passed
        except RequestError as error:
            pytest.fail(f"{number}: {change.text}: {error}")
        harmless = change.harmless()
        if passed and not harmless:
            missed.append(f"{number}: {change.text}")
        seen[f"harmless: {harmless}" if passed else "red"] += 1
        shutil.rmtree(folder)
    with capsys.disabled():
        print("", *(f"{count} {what}" for what, count in seen.most_common()), sep="\n  ")
    assert not missed
    # How far rounding may go, the comparison itself says: that must not excuse much.
    assert seen[f"harmless: {ROUNDING}"] <= 0.02 * seen.total() + 1
    assert seen["red"] > 0.5 * seen.total()


def _link(source: str, target: str) -> None:
    """Links what is read alone: a file is unlinked before it is changed."""
    Path(target).hardlink_to(source)
