"""The chapter of strategies: its presets, and the suites of every way to split."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.chapters.spec import ChapterSpec
from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.chapters.suites import Settings, Suite

# JAX compiles each layer for each size on each device. So the test set is as large as a microbatch,
# and its shards have the sizes of those of microbatches. 103 examples divide by neither 2 nor
# 3, so shards and microbatches differ in size: an error in their weights shows.
_SHORT: Final[Settings] = {"lr": 0.05, "steps": 3, "train_examples": 2000}
_SIZES: Final[dict[str, Settings]] = {
    "float64": {"batch_size": 103, "microbatches": 3, "test_examples": 35},
    "float32": {"batch_size": 101, "test_examples": 101},
}


def _suite(
    name: str,
    devices: tuple[int, ...],
    more_devices: tuple[int, ...] = (),
    alone_in: str = "float64-data",
    **settings: str | int,
) -> Suite:
    """Runs from the same weights and over the same minibatches as all others, in one dtype."""
    dtype = name.partition("-")[0]
    given: Settings = {**_SHORT, **_SIZES[dtype], "dtype": dtype, **settings}
    lacking = _lacking(given) if "native" in settings else {}
    where = name, f"strategies/{name}", devices, more_devices
    return Suite("strategies", *where, given, alone_in=alone_in, lacking=lacking)


def _lacking(settings: Settings) -> dict[str, str]:
    """Why frameworks have no means of their own to train so, by framework."""
    own: StrategiesOptions = StrategiesOptions(
        strategy=str(settings["strategy"]), schedule=str(settings.get("schedule", "1f1b"))
    )
    return {name: why for name in FRAMEWORKS if (why := own.no_native(name))}


def _suites() -> Iterator[Suite]:
    """Every strategy, and further orders of a pipeline, meshes, and stages: one answer for all."""
    for name in STRATEGIES:  # of runs that are made by hand
        yield Suite("strategies", name, ".", (), (), {"preset": "quick", "strategy": name})
    for name in STRATEGIES:
        own: Settings = {"preset": "quick", "strategy": name, "native": True}
        where = f"native-{name}", ".", (), ()
        yield Suite("strategies", *where, own, lacking=_lacking(own))
    # Three devices show what two hide; four are those of meshes, and of tests.
    yield _suite("float64-data", (1, 2), (3,), alone_in="", strategy="data")
    # ZeRO-2 goes through what ZeRO-1 and ZeRO-3 go through, so `nox -s grid` alone runs it.
    for name in STRATEGIES:
        if name != "data":
            counts = ((), (2, 3)) if name == "zero2" else ((3,), (2,))
            yield _suite(f"float64-{name}", *counts, strategy=name)
    for order in ("gpipe", "naive"):
        yield _suite(f"float64-{order}", (), (3,), strategy="pipeline", schedule=order)
    for name, more in {"pipeline": (6,), "tensor": (4, 6), "zero3": (6,)}.items():
        yield _suite(f"float64-{name}-mesh", (), more, strategy=name, replicas=2)
    native = partial(_suite, native=True)
    yield native("float64-native-data", (3,), (2,), strategy="data")
    for name, order in {"pipeline": "gpipe", "naive": "naive"}.items():
        yield native(f"float64-native-{name}", (3,), (2,), strategy="pipeline", schedule=order)
    yield native("float64-native-tensor", (3,), (2,), strategy="tensor")
    yield native("float64-native-zero1", (3,), (2,), strategy="zero1")
    yield native("float64-native-zero2", (), (2,), strategy="zero2")
    yield native("float64-native-zero3", (3,), (2,), strategy="zero3")
    yield native("float64-native-tensor-mesh", (), (4,), strategy="tensor", replicas=2)
    # What rounding adds shows in the first chapter's float32 runs; these stand for all strategies.
    yield _suite("float32-data", (), (1, 2), alone_in="", strategy="data")
    yield _suite("float32-zero3", (), (2,), "float32-data", strategy="zero3")
    yield native("float32-native-zero3", (), (2,), "float32-data", strategy="zero3")
    yield _suite("float64-deep", (), (1, 8), alone_in="", strategy="pipeline", depth=4)


SPLIT: Final = ChapterSpec(
    name="strategies",
    net="LeNet",
    title="LeNet split by data, pipeline or tensor parallelism, which the book's 'Training on "
    "Multiple GPUs' names, or by ZeRO",
    heading="LeNet, split in every way",
    options=StrategiesOptions,
    presets={
        "book": {"batch_size": 256, "lr": 0.02, "epochs": 10},
        "quick": {
            "batch_size": 16,
            "lr": 0.03,
            "lr_decay": "linear",
            "epochs": 4,
            "train_examples": 4800,
            "test_examples": 2000,
        },
    },
    suites=tuple(_suites()),
)
