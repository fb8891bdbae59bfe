"""What tests let the frameworks' own ways to split do, in as many processes as they need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from momentum_steps import MOST_DEVICES, OneDevice, numbers
from scratch_steps import batches, far

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import Array, Weights, part
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.compare import numpy_nets
from common.models.weights_file import save_weights
from common.parallel.ledger import Collective

STEPS: Sequence[tuple[Array, Array]] = [
    *batches(2, 11, "float64"),
    *(batches(1, n, "float64")[0] for n in (2, 1)),
]
"""The third leaves a device without an example, and the fourth a whole row of them."""

RATES = (0.1, 0.05, 0.2, 0.1)

PAGE = Path(__file__).parents[2] / "docs/splitting.md"

KINDS = {"sums": "all-reduce", "gathers": "all-gather", "hands round": "broadcast", "sends": "send"}
"""What the page calls collectives."""

CASES = {
    name: StrategiesOptions(name, native=True, schedule="gpipe", microbatches=4)
    for name in STRATEGIES
}
CASES |= {x: replace(CASES["pipeline"], schedule=x) for x in SCHEDULES if x != "gpipe"}


def cases(framework: str, devices: int) -> dict[str, StrategiesOptions]:
    """By name, what a framework has means for: on three devices all, uneven.

    On four, some on a mesh; on one, some.
    """
    chosen = CASES | {"tensor, uneven": replace(CASES["tensor"], depth=1)}
    if devices == 1:
        chosen = {name: CASES[name] for name in ("data", "pipeline", "naive", "tensor", "zero3")}
    if devices == 4:
        chosen = {
            f"{name} on a mesh": replace(options, replicas=2)
            for name, options in CASES.items()
            if name not in ("data", "zero2", "1f1b")
        }
    return {name: options for name, options in chosen.items() if not options.no_native(framework)}


@dataclass(frozen=True)
class Trained:
    """A worker: takes the steps of every case, and of one that was resumed by the last of them."""

    framework: str
    devices: int
    folder: Path

    def __call__(self, process: Process) -> None:
        """Saves what a case gives."""
        chapter = backend(self.framework, "strategies")
        # The tests' own process keeps the devices and threads that it got first: `all_devices`.
        count, threads = (self.devices, 1) if process.count > 1 else (MOST_DEVICES, 2)
        local = chapter.devices(process, DeviceRequest(count, "cpu", threads)).local
        devices = local[: self.devices]
        for name, options in cases(self.framework, self.devices).items():
            replicas = chapter.replicate(numbers(options), devices, options)
            grads = chapter.gradients(*STEPS[0], replicas, devices, options)
            found = {f"gradients/{key}": value for key, value in grads.items()}
            # The first step is one by hand.
            by_hand, one = StrategiesOptions(microbatches=1, depth=options.depth), devices[:1]
            single = chapter.replicate(numbers(options), one, by_hand)
            losses = [float(chapter.train_batch(*STEPS[0], single, one, RATES[0], by_hand))]
            before = chapter.save(single)
            chapter.restore(before, replicas, devices)
            for (X, y), lr in zip(STEPS[1:], RATES[1:], strict=True):
                before = chapter.save(replicas)
                losses.append(float(chapter.train_batch(X, y, replicas, devices, lr, options)))
            after = chapter.save(replicas)
            chapter.restore(after, single, one)
            assert far(chapter.save(single), after) == 0, name
            again = chapter.replicate(numbers(options), devices, options)
            chapter.predict(STEPS[-1][0], again, devices)  # it leaves nothing behind
            chapter.restore(before, again, devices)
            chapter.train_batch(*STEPS[-1], again, devices, RATES[-1], options)
            for key, values in chapter.save(again).items():
                assert values.tobytes() == after[key].tobytes(), f"{name}: {key} was not resumed"
            found |= {f"after/{key}": value for key, value in after.items()}
            found |= {
                f"logits/{n}": chapter.predict(STEPS[0][0][:n], replicas, devices) for n in (2, 7)
            }
            if process.rank == 0:
                save_weights(
                    self.folder / f"{name}.safetensors", found | {"losses": np.array(losses)}
                )


def by_star(moved: Sequence[Collective], devices: int) -> int:
    """The bytes that all devices send if one of them adds up and sends the sum, as plans count."""
    times = {"send": 1, "all-reduce": 2 * (devices - 1)}
    return sum(times.get(each.kind, devices - 1) * each.size for each in moved)


def told_of_moved(framework: str) -> dict[str, tuple[dict[str, int], int]]:
    """By strategy, what a page says that 12 images move between two devices, in numbers.

    By kind, and sent if one device adds up and hands round. Of what there is not, nothing.
    """
    lines = PAGE.read_text(encoding="utf-8").split("What they move is counted, too")[1].splitlines()
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    column = [heading.lower() for heading in rows[0]].index(framework)
    found = {}
    for row in rows[2 : 2 + len(STRATEGIES)]:
        if row[column] == "none":
            continue
        moved = (each.rsplit(" ", 1) for each in row[column].split(", "))
        sizes = {KINDS[word]: int(size.replace(",", "")) for word, size in moved}
        found[row[0]] = sizes, int(row[column + 1].replace(",", ""))
    return found


def require_right(found: Weights, options: StrategiesOptions, limit: float) -> None:
    """Asserts that all of a case is what NumPy finds on one device."""
    weights = numbers(options)
    right = OneDevice(weights)
    expected = numpy_nets.step("strategies", *STEPS[0], weights, [(0, 11)]).gradients
    assert far(part(found, "gradients/"), expected) < limit
    losses = [right.step(X, y, lr) for (X, y), lr in zip(STEPS, RATES, strict=True)]
    np.testing.assert_allclose(found["losses"], losses, rtol=limit, atol=0)
    after = part(found, "after/")
    velocity = {f"momentum/{name}": values for name, values in right.velocity.items()}
    assert far(after, {**right.weights, **velocity}) < limit
    for n, logits in part(found, "logits/").items():
        exact = numpy_nets.logits("strategies", STEPS[0][0][: int(n)], right.weights)
        np.testing.assert_allclose(logits, exact, rtol=0, atol=limit)
