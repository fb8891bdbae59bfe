"""The training loop, with a chapter that needs no framework."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from fake_chapter import CONFIG, FakeChapter
from hypothesis import given, strategies as st

from common.data.dataset import Dataset, minibatches, numbers, pixels
from common.models.nets import LENET
from common.models.weights_file import initial_weights
from common.records.trace import PROBE
from common.settings.arguments import all_settings
from common.settings.config import Config
from common.training.loop import Outcome, Training, accuracy
from common.training.reporter import Reporter


def data(test_examples: int = 2300, wrong: int = 368) -> Dataset:
    """Images whose first pixel is the label, but `wrong` of the test set."""
    train, test = (np.arange(n, dtype=np.uint8) % 10 for n in (50, test_examples))
    images = [np.zeros((len(labels), 28, 28), np.uint8) for labels in (train, test)]
    for part, labels in zip(images, (train, test), strict=True):
        part[:, 0, 0] = labels
    images[1][:wrong, 0, 0] ^= 1
    return Dataset("synthetic", images[0], train, images[1], test)


def run(chapter: FakeChapter, **changes: object) -> Outcome:
    config: Config = CONFIG.model_copy(update=changes)
    training = Training(chapter, ["a", "b"], config, data(), Reporter(quiet=True))
    return training.train(initial_weights(LENET, 0, "float64"))


counts = st.integers(1, 300)


def steps_of_epochs(config: Config) -> list[int]:
    bounds = [config.steps_before(epoch) for epoch in range(config.number_of_epochs() + 1)]
    return [stop - start for start, stop in pairwise(bounds)]


@given(train_examples=counts, batch_size=counts, steps=counts)
def test_steps_are_spread_over_whole_epochs_and_a_rest(
    train_examples: int, batch_size: int, steps: int
) -> None:
    settings = {"train_examples": train_examples, "batch_size": batch_size}
    config = CONFIG.model_copy(update={**settings, "epochs": None, "steps": steps})
    whole = len(range(0, train_examples, batch_size))
    *full, last = steps_of_epochs(config)
    assert sum(full) + last == steps
    assert set(full) <= {whole}
    assert 1 <= last <= whole
    assert steps_of_epochs(CONFIG.model_copy(update={**settings, "epochs": 3})) == [whole] * 3
    assert config.examples_in(steps) == min(steps * batch_size, train_examples)


def test_epochs_train_on_the_minibatches_in_order_and_test_on_the_whole_set() -> None:
    chapter, given = FakeChapter(), data()
    outcome = run(chapter)
    expected = [
        numbers(*batch, "float64")
        for epoch in range(2)
        for batch in minibatches(
            given.train_images, given.train_labels, batch_size=20, seed=5, epoch=epoch
        )
    ]
    assert [len(y) for _, y in chapter.batches] == [20, 20, 10] * 2
    for (X, y), (X_expected, y_expected) in zip(chapter.batches, expected, strict=True):
        assert np.array_equal(X, X_expected)
        assert np.array_equal(y, y_expected)
    assert outcome.losses == [1 / step for step in range(1, 7)]
    assert [(each.epoch, each.steps) for each in outcome.epochs] == [(1, 3), (2, 3)]
    for each in outcome.epochs:
        assert each.test_accuracy == 1932 / 2300
        assert each.images_per_second == 50 / each.seconds
    tensors = outcome.tensors
    predictions = tensors["test/predictions"][-1]
    assert predictions.dtype == np.uint8
    assert accuracy(predictions, given.test_labels) == 1932 / 2300
    # The gradient is of the first minibatch, the logits of the probe.
    assert chapter.calls.index("gradients") < chapter.calls.index("train_batch")
    for first, trained in zip(chapter.first[0], chapter.batches[0], strict=True):
        assert np.array_equal(first, trained)
    assert all((tensors[f"gradients/{name}"] == 3).all() for name in LENET)
    before, after = tensors["logits/before"], tensors["logits/after"]
    probe = pixels(given.test_images[:PROBE], "float64")
    assert np.array_equal(before.argmax(axis=1), (probe[:, 0, 0, 0] * 255).round())
    assert np.allclose(after - before, 6 * 0.5, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [3, 4])
def test_exactly_as_many_steps_as_asked_for_each_with_its_own_rate(steps: int) -> None:
    chapter = FakeChapter()
    outcome = run(chapter, epochs=None, steps=steps, lr=0.4, lr_decay="linear")
    assert np.allclose(chapter.rates, [0.4 * (1 - step / steps) for step in range(steps)])
    assert len(chapter.batches) == len(outcome.losses) == steps
    assert sum(each.steps for each in outcome.epochs) == steps
    last = outcome.epochs[-1]
    assert last.images_per_second == [20, 40, 50][last.steps - 1] / last.seconds


def test_the_clock_is_read_after_synchronizing_and_before_evaluating() -> None:
    chapter = FakeChapter()
    run(chapter, epochs=30)  # of the 22nd epoch, only the last step is kept
    epochs = re.findall("[ts]+", "".join(call[0] for call in chapter.calls))
    assert epochs[0] == "tststs" + "s"
    assert epochs[21] == "t" + "tsts" + "s"


@pytest.mark.parametrize(
    ("chapter", "kind", "settings", "expected"),
    [
        ("scratch", "cpu", {}, ("book", 256, 0.2, "none")),
        ("concise", "gpu", {}, ("book", 768, 0.3, "none")),
        ("concise", "gpu", {"batch_size": 60, "lr": 0.7}, ("book", 60, 0.7, "none")),
        ("concise", "cpu", {}, ("quick", 32, 0.06, "linear")),
        ("concise", "cpu", {"steps": 2}, ("quick", 32, 0.06, "none")),
    ],
)
def test_a_preset_decides_what_no_flag_does(
    chapter: str, kind: str, settings: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """The book's batch and rate of ResNet-18 are those of each device."""
    filled = Config.of(all_settings("jax", chapter, settings), 3, kind)
    found = (filled.preset, filled.batch_size, round(filled.lr, 9), filled.lr_decay)
    assert found == expected
