"""Small valid files, made by the project's own writers: hostile files are made from them."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from bench.results import Bench
from common.base.arrays import Weights
from common.chapters.chapters import SPECS
from common.models.nets import trainable
from common.models.weights_file import digest, save_weights
from common.records.record import DataUsed, Epoch, Record
from common.records.store import write_record_as
from common.records.trace import trace_shapes
from common.seeds.spread import Spread, statistics
from common.settings.config import Config

Files = tuple[bytes, ...]
"""The files of an input, in the order of their names."""

DATA: Final = DataUsed(name="synthetic", sha256="0" * 64, train_examples=3, test_examples=2)

CREATED: Final = "2026-11-21T00:00:00+00:00"

MACHINE: Final[dict[str, str | int]] = {"processor": "one", "cores": 2}

PREDICTIONS: Final = np.zeros((2, 2), np.uint8)


def weights() -> list[Files]:
    """A file of LeNet's weights would have half a million bytes: arrays as small as can be."""
    numbers = np.arange(12, dtype=np.float32)
    made: list[Weights] = [
        {"weight": numbers.reshape(3, 4), "conv1.bias": numbers[:4]},
        {"conv1.bias": numbers[:1].astype(np.float64), "": np.ones((0, 3)), "n": np.ones(())},
        {"conv1.bias": np.arange(9, dtype=np.uint8), "flags": np.ones(3, bool)},
    ]
    found: list[Files] = []
    with TemporaryDirectory() as name:
        path = Path(name) / "w.safetensors"
        for each in made:
            save_weights(path, each)
            found.append((path.read_bytes(),))
    return found


def runs() -> list[Files]:
    """Records with their tensors: a few, as all that a run leaves would be a megabyte."""
    first = {"w": np.ones(2, np.float32)}
    arrays: Weights = {
        **{f"trace/weights/0/{name}": values for name, values in first.items()},
        "logits/before": np.zeros((2, 10), np.float32),
        "test/labels": np.zeros(2, np.uint8),
        "test/predictions": PREDICTIONS,
    }
    told = {"initial_weights_sha256": digest(first)}
    return [_written(record(chapter, 1).model_copy(update=told), arrays) for chapter in SPECS]


def checkpoints() -> list[Files]:
    """Records of runs at their end, with those of their tensors that are not `others`."""
    arrays: Weights = {"epoch/seconds": np.zeros(1), "test/predictions": PREDICTIONS}
    told = {"status": "running"}
    return [_written(record(chapter, 2).model_copy(update=told), arrays) for chapter in SPECS]


@cache
def others(chapter: str) -> Weights:
    """The tensors of a checkpoint that are too large for an input, all of them valid."""
    config = record(chapter, 2).config
    state = {
        f"state/{name}": np.ones(shape if trainable(name) else (1, *shape), np.float32)
        for name, shape in config.shapes().items()
    }
    for name, shape in config.velocities().items():
        state[f"state/momentum/{name}"] = np.ones(shape, np.float32)
    small = ("trace/images/", "trace/labels/")
    trace = {
        name: np.ones(shape, np.uint8 if name.startswith(small) else np.float32)
        for name, shape in trace_shapes(config).items()
    }
    return state | trace


def benches() -> list[Files]:
    """What the benchmark writes."""
    figures = {"images_per_second": [9.0, 8.5], "peak_memory": [1e9, 2e9]}
    ours = {"framework": "jax", "chapter": "scratch", "contender": "ours", "devices": 1}
    made = {
        "created": CREATED,
        "machine": MACHINE,
        "rounds": 2,
        "samples": [ours | {"figures": figures}],
        "versions": {"jax": {"numpy": "2"}},
        "data": DATA,
    }
    return _checked(Bench, made)


def spreads() -> list[Files]:
    """What `python -m common.seeds` writes."""
    made = {
        "chapter": "scratch",
        "preset": "quick",
        "devices": 1,
        "data": "synthetic",
        "train_examples": 3,
        "test_examples": 2,
        "created": CREATED,
        "seeds": [0, 1],
    }
    return _checked(Spread, made | statistics(np.array([[0.5, 1.0], [0.5, 0.0]]), ["jax", "mxnet"]))


def _checked(kind: type[BaseModel], made: dict[str, Any]) -> list[Files]:
    return [(kind.model_validate(made).model_dump_json(by_alias=True).encode(),)]


def messages() -> list[Files]:
    """What processes of a run say to each other."""
    hello = b'{"rank": 1, "host": "b", "asked": {"--devices": "2"}}\n'
    return [(hello + b'{"alive": true}\n{"give": [1, 2]}\n{"done": true}\n',)]


def _written(made: Record, arrays: Weights) -> Files:
    with TemporaryDirectory() as name:
        write_record_as(Path(name) / "run.json", made, arrays)
        return tuple(each.read_bytes() for each in sorted(Path(name).iterdir()))


def record(chapter: str, devices: int) -> Record:
    """The record of a short run: of two epochs on one device, of three steps on several."""
    options: Any = {
        "scratch": {},
        "concise": {"width": 1, "wrapper": "sharding"},
        "strategies": {"strategy": "pipeline", "microbatches": 2},
    }[chapter]
    config = Config(
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
    figures = {"test_accuracy": 1.0, "seconds": 0.5}
    return Record(
        framework="jax",
        chapter=chapter,
        status="complete",
        command=["python", "-m", f"frameworks.jax.{chapter}"],
        started=CREATED,
        machine=MACHINE,
        versions={"numpy": "2"},
        source_sha256="0" * 64,
        devices=[f"cpu:{number}" for number in range(devices)],
        config=config,
        data=DATA,
        initial_weights_sha256="0" * 64,
        losses=[1.0 / step for step in range(1, 1 + config.number_of_steps())],
        epochs=[
            Epoch(epoch=number, steps=planned, images_per_second=2 * min(2 * planned, 3), **figures)
            for number, planned in enumerate(config.steps_of_epochs(), start=1)
        ],
        traffic=config.traffic(),
    )
