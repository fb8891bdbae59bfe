"""Mistakes between the steps that are recomputed, after them, and in what all runs share."""

from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from agreement import changed, judge, make, rewrite, trained
from numpy_chapter import NumpyChapter, NumpyConcise, copied

from common.backends.frameworks import FRAMEWORKS as ALL
from common.base.arrays import Array
from common.chapters.suites import SUITES
from common.compare.checks import left_out
from common.compare.runs import EXAMPLES, KNOWN
from common.data.dataset import Batch, Bytes, Dataset, minibatches, pixels
from common.data.synthetic import synthetic
from common.parallel.shards import shard_bounds, shard_sizes
from common.records import trace
from common.records.record import read_record, read_tensors
from common.settings.arguments import all_settings
from common.settings.config import Config
from planted.run import settings as planted_settings

FRAMEWORKS = ("jax", "mxnet")


def notes(folder: Path, backend: NumpyChapter, devices: int = 1, **settings: Any) -> set[str]:
    """What fails if all runs are of this backend."""
    for framework in FRAMEWORKS:
        make(folder, framework, backend, devices, **settings)
    return {check.why for check in judge(folder, frameworks=FRAMEWORKS).failures}


def test_an_update_that_is_left_out_is_seen_in_any_step() -> None:
    run = trained("jax", NumpyChapter(), 1, dtype="float32", steps=21)
    biases = run.arrays["trace/bias"].copy()
    assert left_out(run) is None
    biases[7] = biases[6]
    assert left_out(changed(run, {"trace/bias": biases})) == 7
    # At such a rate, rounding hides most updates.
    assert left_out(trained("jax", NumpyChapter(), 1, dtype="float32", steps=21, lr=1e-9)) is None


class PredictsEarly(NumpyChapter):
    """Predicts by the weights of the last time, and the first time by the initial ones."""

    def trainer(self, weights: Mapping[str, Array], *where: Any) -> Any:
        self.earlier = copied(weights)
        return super().trainer(weights, *where)

    def predict(self, X: Array) -> Array:
        if len(X) <= trace.PROBE:
            return super().predict(X)
        now, self.replicas = self.replicas, [self.earlier]
        logits = super().predict(X)
        self.replicas, self.earlier = now, copied(now[0])
        return logits


class PredictsNoLastPart(NumpyChapter):
    def predict(self, X: Array) -> Array:
        logits = super().predict(X)
        logits[120:] = 0
        return logits


@pytest.mark.parametrize("bug", [PredictsEarly, PredictsNoLastPart])
def test_predictions_that_are_not_of_the_weights_are_seen(
    tmp_path: Path, bug: type[NumpyChapter]
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "steps": None, "test_examples": 130, "lr": 0.5}
    assert not notes(tmp_path, NumpyChapter(), **settings)
    (note,) = notes(tmp_path, bug(), **settings)
    assert note.startswith("the class of test example ")


class PredictsInHalf(NumpyChapter):
    """Computes the logits of all test images at once with ten bits of the mantissa."""

    def predict(self, X: Array) -> Array:
        coarse = X if len(X) <= trace.PROBE else X.astype(np.float16).astype(X.dtype)
        return super().predict(coarse)


def test_predictions_in_half_precision_are_seen(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"test_examples": 130, "dtype": "float32"}
    assert not notes(tmp_path, NumpyChapter(), **settings)
    path = tmp_path / "jax-scratch-1dev.json"
    record = read_record(path)
    classes, labels = (read_tensors(path, record)[f"test/{x}"] for x in ("predictions", "labels"))
    unchecked = np.isin(np.arange(130), trace.checked_images(record.config), invert=True)
    place = int((unchecked & (classes[0] != labels)).argmax())
    classes[0, place] = next(x for x in range(10) if x not in (classes[0, place], labels[place]))
    rewrite(path, {"test/predictions": classes})  # the accuracy stays
    (check,) = judge(tmp_path, frameworks=FRAMEWORKS).failures
    assert check.why == "the last predictions are not the classes of test/logits"
    (note,) = notes(tmp_path, PredictsInHalf(), **settings)
    assert "step 4, test/logits[" in note


def test_what_is_not_as_the_configuration_has_it_is_named() -> None:
    run = trained("jax", NumpyChapter(), 2)
    name, (epoch,) = "weights/fc1.weight", run.record.epochs
    right, bias = run.arrays[name], "weights/fc3.bias"
    assert run.wrong_array == ("", "")
    for arrays in ({name: right.T}, {name: right.astype("float32")}, {bias: np.zeros(1)}):
        assert changed(run, arrays).wrong_array[0] in arrays
    for epochs, where in (
        ([], "epochs"),
        ([epoch.model_copy(update={"steps": 1})], "epochs"),
        ([epoch.model_copy(update={"test_accuracy": 0.99})], "test/predictions"),
    ):
        assert changed(run, epochs=epochs).wrong_array[0] == where


def by_256(images: Bytes, dtype: str) -> Array:
    scaled: Array = images[:, np.newaxis].astype(dtype) / np.dtype(dtype).type(256)
    return scaled


def last_longer(examples: int, shards: int) -> list[tuple[int, int]]:
    return list(pairwise(accumulate(shard_sizes(examples, shards)[::-1], initial=0)))


def late(self: Config, step: int) -> float:
    return self.lr * (1 - max(step - 1, 0) / self.number_of_steps())


PER_DEVICE: dict[str, Any] = {"chapter": "concise", "width": 1, "batch_norm": "per-device"}


@pytest.mark.parametrize(
    ("right", "wrong", "chapter", "settings"),
    [
        (pixels, by_256, NumpyChapter(), {}),
        (Config.learning_rate, late, NumpyChapter(), {"lr_decay": "linear"}),
        (shard_bounds, last_longer, NumpyConcise(), {**PER_DEVICE, "batch_size": 5, "steps": 2}),
    ],
)
def test_a_mistake_that_all_runs_share_is_seen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    right: FunctionType,
    wrong: FunctionType,
    chapter: NumpyChapter,
    settings: dict[str, Any],
) -> None:
    said = notes(tmp_path, chapter, 2, **settings)
    monkeypatch.setattr(right, "__code__", wrong.__code__)  # wherever it is imported
    assert notes(tmp_path, chapter, 2, **settings) > said


def zero_for_nine(labels: Bytes) -> Bytes:
    return np.where(labels == 9, 0, labels).astype(np.uint8)


def in_minibatches(*data: Any, **how: Any) -> Iterator[Batch]:
    for X, y in minibatches(*data, **how):
        yield X, zero_for_nine(y)


@pytest.mark.parametrize("planted", [None, "data", "minibatches", "order"])
def test_other_examples_than_the_data_sets_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str | None
) -> None:
    images, labels, *test = synthetic(first=(202, 101))
    if planted == "minibatches":
        monkeypatch.setattr("common.training.loop.minibatches", in_minibatches)
    if planted == "data":
        labels = zero_for_nine(labels)
    data = Dataset("synthetic", images, labels, *test)
    sizes = {"train_examples": 202, "test_examples": 101, "batch_size": 101, "steps": 4, "seed": 8}
    run = trained("jax", NumpyChapter(), 1, data=data, **sizes)
    if planted == "order":
        run = changed(run, epochs=run.record.epochs[::-1])
    assert run.wrong_array[0] == ("examples" if planted else "")


@pytest.mark.parametrize("dataset", EXAMPLES)
def test_the_examples_of_every_suite_and_planted_bug_are_known(dataset: str) -> None:
    for suite in (suite for suite in SUITES if suite.kind == "cpu"):
        framework = next(name for name in ALL if name not in suite.lacking)
        devices = next((k for k in (*suite.devices, *suite.more_devices)), 1)
        for given in (suite.settings, planted_settings(suite, devices, "results")):
            settings = all_settings(framework, suite.chapter, given)
            asked = Config.of(settings, devices, "cpu")
            if (asked.options.task.dataset == "sums") != (dataset == "sums"):
                continue
            config = asked.on_data(dataset, *EXAMPLES[dataset])
            sizes = config.train_examples, config.test_examples, config.batch_size
            assert dataset in KNOWN[*sizes, config.number_of_steps()]
            assert config.seed == 8
