"""The data set of sums."""

import numpy as np

from common.data.dataset import numbers
from common.data.sums import NO_LABEL, TOKENS, sums, text
from common.training.loop import accuracy


def test_each_sum_is_there_once_and_only_its_answer_is_to_be_predicted() -> None:
    X, y, more_texts, more_labels = sums()
    found = set()
    for tokens, labels in zip(
        np.concatenate([X, more_texts]), np.concatenate([y, more_labels]), strict=True
    ):
        line = "".join(TOKENS[token] for token in tokens).rstrip("\n")
        question, _, answer = line.partition("=")
        a, b = map(int, question.split("+"))
        found.add((a, b))
        assert line + "\n" == text(a, b)
        assert int(answer[::-1]) == a + b
        due = np.full(len(labels), NO_LABEL)
        due[len(question) : len(line)] = [TOKENS.index(sign) for sign in answer + "\n"]
        assert labels.tolist() == due.tolist()
    assert len(found) == 100 * 100
    assert [len(part) for part in (X, y, more_texts, more_labels)] == [8000, 8000, 2000, 2000]


def test_an_answer_is_right_if_all_of_it_is() -> None:
    X, y = (part[:3] for part in sums()[:2])
    predictions = np.where(y == NO_LABEL, 0, y)
    assert accuracy(predictions, y) == 1
    place = np.flatnonzero(y[1] != NO_LABEL)[-1]
    predictions[1, place] = (predictions[1, place] + 1) % len(TOKENS)
    assert accuracy(predictions, y) == 2 / 3
    tokens, labels = numbers(X, y, "float32")
    assert tokens.dtype == labels.dtype == np.int64
    assert ((labels == -1) == (y == NO_LABEL)).all()
