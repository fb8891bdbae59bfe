"""A record that contradicts itself, its tensors or the others is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit, failed, failures, rewrite

from common.compare.folder import judge
from common.records.store import read_record, read_tensors
from common.records.trust import inconsistencies

EPOCH = {"epoch": 1, "steps": 4, "test_accuracy": 0.1, "seconds": 4.0, "images_per_second": 10.0}
HERE = {"host": "a", "devices": 1, "peak_memory": 9, "waited": 0.5}
HOSTS = {
    "launcher": "by hand",
    "engine": "Gloo",
    "transport": "TCP",
    "processes": [HERE, {**HERE, "host": "b"}],
}
DATA = {"name": "synthetic", "train_examples": 40, "test_examples": 10, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"devices": ["cpu:0", "cpu:0"]}, "names a device twice"),
        ({"devices": ["cpu:0", "cuda:1"]}, "of the kind cpu, and names cpu:0, cuda:1"),
        ({"config": {"device_kind": "gpu"}}, "of the kind gpu, and names"),
        ({"cluster": HOSTS}, "ran on a, b, its devices are of no host"),
        (
            {"cluster": HOSTS, "devices": ["a cpu:0", "c cpu:0"]},
            "its processes ran on a, b, its devices are of a, c",
        ),
        ({"cluster": HOSTS, "devices": ["b cpu:0", "a cpu:0"]}, "of b, a"),
        (
            {"cluster": {**HOSTS, "processes": [HERE, {**HERE, "devices": 2**31 - 1}]}},
            "its processes had 2147483648 devices, and it names 2",
        ),
        ({"cluster": {**HOSTS, "processes": [HERE]}}, "of schema 6: cluster.processes"),
        ({"epochs": [{**EPOCH, "epoch": 77}]}, "epoch 1 is called 77"),
        ({"epochs": [{**EPOCH, "steps": 999}]}, "with 999 steps of 4"),
        ({"epochs": [{**EPOCH, "test_accuracy": 1.0}]}, "its test accuracy of epoch 1 is 1, and 0"),
        ({"epochs": [{**EPOCH, "seconds": 1.0}]}, "the speed of epoch 1"),
        ({"data": {**DATA, "name": "fashion-mnist"}}, "40 images of fashion-mnist"),
        ({"data": {**DATA, "train_examples": 41}}, "41 images of synthetic"),
        ({"data": DATA}, "data is 0000"),
        ({"options": {"allreduce": "native"}}, "its traffic is not that of its allreduce"),
        ({"config": {"preset": "best"}}, "its preset is best"),
        ({"options": {"width": 4}}, "not a record of schema 6: config.options"),
        ({"config": {"init_weights": None}}, "its initial weights are not those of seed 0"),
        ({"failure": {"message": "it was ended", "traceback": ""}}, "tells of a failure"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    results: Path, changes: dict[str, Any], why: str
) -> None:
    path = results / "float64/jax-scratch-2dev.json"
    config = json.loads(path.read_text())["config"]
    if "options" in changes:
        changes = {"config": config | changes}
    elif "config" in changes:
        changes = {"config": config | changes["config"]}
    edit(path, **changes)
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert why in failures(verdict)[0].note


def test_a_record_of_several_hosts_may_agree_with_itself(results: Path) -> None:
    edit(
        results / "float64/jax-scratch-2dev.json",
        cluster=HOSTS,
        devices=["a cpu:0", "b cpu:0"],
    )
    assert not failures(judge(results))


def test_a_gpu_of_a_host_is_one_whatever_the_host_is_called(results: Path) -> None:
    record = read_record(results / "float64/jax-scratch-2dev.json")
    for kind, names in (
        ("gpu", ["highcpu-1 cuda:0", "highcpu-2 gpu(0)"]),
        ("cpu", ["a cpu:0"] * 2),
    ):
        config = record.config.model_copy(update={"device_kind": kind})
        changed = record.model_copy(update={"config": config, "devices": names})
        assert not any("of the kind" in each for each in inconsistencies(changed))


def test_a_record_that_was_changed_later_is_refused(results: Path) -> None:
    path = results / "float64/jax-scratch-2dev.json"
    text = path.read_text()
    assert '"peak_memory": ' in text
    path.write_text(text.replace('"peak_memory": ', '"peak_memory": 1'))
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert "was changed after it was written" in failures(verdict)[0].note


def test_predictions_that_the_logits_deny_are_refused(results: Path) -> None:
    path = results / "float64/jax-scratch-2dev.json"
    tensors = read_tensors(path, read_record(path))
    predictions, labels = tensors["test/predictions"], tensors["test/labels"]
    image = int(np.flatnonzero(predictions[-1] != labels)[0])
    order = tensors["logits/after"][image].argsort()
    assert predictions[-1, image] == order[-1]
    last = next(each for each in order if each != labels[image])
    predictions[-1, image] = last  # the accuracy stays the same
    rewrite(path, {"test/predictions": predictions})
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert (
        f"its last prediction for test image {image} is {last}, which" in failures(verdict)[0].note
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_weights_of_another_type_are_seen(results: Path, dtype: str) -> None:
    path = results / "float64/mxnet-scratch-2dev.json"
    weights = read_tensors(path, read_record(path))["weights/fc2.weight"]
    rewrite(path, {"weights/fc2.weight": weights.astype(dtype)})
    assert failed(judge(results)) == {("shapes", "mxnet", 2)}


def test_other_minibatches_are_another_run(results: Path) -> None:
    path = results / "float64/mxnet-scratch-2dev.json"
    labels = read_tensors(path, read_record(path))["trace/labels/2"]
    rewrite(path, {"trace/labels/2": np.roll(labels, 1)})
    verdict = judge(results)
    assert failed(verdict) == {("record", "mxnet", 2)}
    assert "minibatches is" in failures(verdict)[0].note
