"""Small valid files, made by the project's own writers: what mutations start from."""

import gzip
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from bench.d2l_package import write
from bench.results import Bench
from common.base.arrays import Weights
from common.chapters.chapters import SPECS
from common.models.nets import trainable
from common.models.weights_file import digest, save_weights
from common.records.record import DataUsed, Epoch, Record
from common.records.store import write_record
from common.records.trace import trace_shapes
from common.report.benchmark import Samples
from common.settings.config import Config
from common.settings.steps import number_of_steps, steps_of_epochs
from fuzz.formats import vouched
from fuzz.parts import joined

DATA: Final = DataUsed(name="synthetic", sha256="0" * 64, train_examples=3, test_examples=2)


def idx(dimensions: int) -> list[bytes]:
    """Files of labels (1 dimension) or images (3), plain and compressed."""
    images, labels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.arange(5, dtype=np.uint8)
    kind = "labels-idx1" if dimensions == 1 else "images-idx3"
    with TemporaryDirectory() as name:
        write(Path(name), images, labels, compressed=False)
        plain = (Path(name) / f"train-{kind}-ubyte").read_bytes()
    return [plain, gzip.compress(plain, mtime=0)]


def weights() -> list[bytes]:
    """A file of LeNet's weights would have half a million bytes: arrays as small as can be."""
    numbers = np.arange(12, dtype=np.float32)
    return [
        _saved({"weight": numbers.reshape(3, 4), "bias": numbers[:4]}),
        _saved(
            {"conv1.bias": numbers[:1].astype(np.float64), "": np.ones((0, 3)), "n": np.ones(())}
        ),
        _saved({"bytes": np.arange(9, dtype=np.uint8), "flags": np.ones(3, bool)}),
    ]


def records() -> list[bytes]:
    """Records as complete runs leave them, of each chapter."""
    made = [_record(chapter, k) for chapter in SPECS for k in (1, 2)]
    return [_written(each, None)[0] for each in made]


def runs() -> list[bytes]:
    """Records with their tensors: a few, as all that a run leaves would be a megabyte."""
    first = {"w": np.ones(2, np.float32)}
    told = {"initial_weights_sha256": digest(first)}
    arrays: Weights = {
        **{f"trace/weights/0/{name}": values for name, values in first.items()},
        "logits/before": np.zeros((2, 10), np.float32),
        "test/labels": np.zeros(2, np.uint8),
        "test/predictions": np.zeros((2, 2), np.uint8),
    }
    made = [_record(chapter, 1).model_copy(update=told) for chapter in SPECS]
    written = [_written(each, arrays) for each in made]
    return [joined(vouched(record, tensors), tensors) for record, tensors in written]


def checkpoints() -> list[bytes]:
    """Records of runs at their end, with those of their tensors that are not `others`."""
    made = [_record(chapter, 2) for chapter in SPECS]
    running = [each.model_copy(update={"status": "running"}) for each in made]
    written = [
        _written(
            each,
            {
                "epoch/seconds": np.zeros(1),
                "test/predictions": np.zeros((2, DATA.test_examples), np.uint8),
            },
        )
        for each in running
    ]
    return [joined(vouched(record, tensors), tensors) for record, tensors in written]


@cache
def others(chapter: str) -> Weights:
    """The tensors of a checkpoint that are too large for an input; all of them are as they must."""
    config = _config(chapter, 2)
    state = {
        f"state/{name}": np.ones(shape if trainable(name) else (1, *shape), np.float32)
        for name, shape in config.shapes().items()
    }
    trace = {
        name: np.ones(shape, np.float32 if "/weights/" in name else np.uint8)
        for name, shape in trace_shapes(config).items()
    }
    return state | trace


def benches() -> list[bytes]:
    """What the benchmark writes."""
    figures = {"images_per_second": [9.0, 8.5], "peak_memory": [1e9, 2e9]}
    ours = Samples(framework="jax", chapter="scratch", contender="ours", devices=1, figures=figures)
    rate = {"operations_per_second": [1e9]}
    machine = Samples(framework="jax", chapter="", contender="machine", devices=1, figures=rate)
    bench = Bench(
        created="2026-11-21T00:00:00+00:00",
        machine={"processor": "one", "cores": 2},
        rounds=2,
        samples=[ours, machine],
        versions={"jax": {"numpy": "2"}},
        data=DATA,
    )
    return [(bench.model_dump_json(by_alias=True, indent=2) + "\n").encode()]


def _saved(arrays: Weights) -> bytes:
    with TemporaryDirectory() as name:
        path = Path(name) / "w.safetensors"
        save_weights(path, arrays)
        return path.read_bytes()


def _written(record: Record, arrays: Weights | None) -> list[bytes]:
    with TemporaryDirectory() as name:
        path = write_record(Path(name), record, arrays)
        files = [path, *([] if arrays is None else [path.with_suffix(".safetensors")])]
        return [each.read_bytes() for each in files]


def _record(chapter: str, devices: int) -> Record:
    config = _config(chapter, devices)
    steps = steps_of_epochs(config)
    return Record(
        framework="jax",
        chapter=chapter,
        status="complete",
        command=["python", "-m", f"frameworks.jax.{chapter}"],
        started="2026-11-21T00:00:00+00:00",
        machine={"processor": "one", "cores": 2},
        versions={"numpy": "2"},
        source_sha256="0" * 64,
        devices=[f"cpu:{number}" for number in range(devices)],
        config=config,
        data=DATA,
        initial_weights_sha256="0" * 64,
        losses=[1.0 / step for step in range(1, 1 + number_of_steps(config))],
        epochs=[
            Epoch(
                epoch=number,
                steps=planned,
                test_accuracy=1.0,
                seconds=0.5,
                images_per_second=2 * min(planned * 2, 3),
            )
            for number, planned in enumerate(steps, start=1)
        ],
        traffic=config.traffic(),
    )


def _config(chapter: str, devices: int) -> Config:
    options: Any = {"scratch": {}, "concise": {"width": 1, "wrapper": "sharding"}}[chapter]
    return Config(
        framework="jax",
        chapter=chapter,
        devices=devices,
        device_kind="cpu",
        threads=1,
        preset="quick",
        batch_size=2,
        lr=0.5,
        epochs=2 if devices == 1 else None,
        steps=None if devices == 1 else 3,
        seed=5,
        dtype="float32",
        options=options,
        dataset="synthetic",
        train_examples=3,
        test_examples=2,
        init_weights="w.safetensors",
    )
