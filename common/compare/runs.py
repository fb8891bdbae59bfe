"""A run that is compared: its arrays, what of them is compared, and how strictly."""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights, part
from common.base.errors import RequestError
from common.chapters.spec import Settings, spec
from common.compare.limits import LIMITS
from common.compare.numpy_gpt import MoE
from common.compare.numpy_nets import Net
from common.models.weights_file import digest
from common.records.record import Record
from common.records.trace import expected_arrays, traced_steps
from common.settings.arguments import all_settings
from common.settings.config import Config

NUMERICAL: Final = {
    "forward": "logits/before",
    "gradient": "gradients/",
    "trajectory": "losses",
    "weights": "weights/",
    "outcome": "logits/after",
}
"""How the names of the arrays of each numerical check begin."""

LAYERS: Final = {"layers": "layers/before/", "layers_after": "layers/after/"}
ENDS: Final = ("weights", "outcome", "layers_after")
"""Checks that long runs do not have: training amplifies rounding with every step."""

ANY: Final = {"framework", "chapter", "devices", "threads", "deterministic", "preset", "dataset"}
"""Settings that a suite leaves open."""

LEARNED_BY: Final = {"momentum", "depth", "clip"}
"""Options of a net that is split that change what it learns."""

EXAMPLES: Final = {
    "fashion-mnist": (60_000, 10_000),
    "synthetic": (12_800, 2_000),
    "sums": (8_000, 2_000),
}
"""The sizes of the data sets."""

KNOWN: Final = {
    (4800, 2000, 16, 1200): {"fashion-mnist": "eb992eabc3ef7308", "synthetic": "879d08bbb6c3f357"},
    (951, 1101, 100, 10): {"fashion-mnist": "b9adbd8ad66c0bea", "synthetic": "0c99666be7a4d041"},
    (951, 1101, 100, 3): {"fashion-mnist": "9bd7015872ea41a0", "synthetic": "5a1db0a5962004d6"},
    (251, 1101, 100, 3): {"fashion-mnist": "7e224c7f7b8109e3", "synthetic": "db5b2ad6506fc452"},
    (2560, 2000, 32, 240): {"fashion-mnist": "b83999ccfaea1a57", "synthetic": "cb1fb3b89ec39757"},
    (300, 99, 7, 2): {"fashion-mnist": "95927a4f3c44a0af", "synthetic": "d0fda1af69dff35b"},
    (300, 99, 7, 3): {"fashion-mnist": "27cba7b40a05d3c7", "synthetic": "401fa1b85f4fba0e"},
    (134, 23, 67, 4): {"fashion-mnist": "ce8172a71cf95ee0", "synthetic": "5b1332e5498514ad"},
    (202, 101, 101, 4): {"fashion-mnist": "84f7e5cf3c623ff7", "synthetic": "05bc2384e807d177"},
    (35, 7, 7, 9): {"sums": "1791abde9bb87ba2"},
    (8000, 2000, 32, 1500): {"sums": "75a0617291fa38f1"},
}
"""How `examples` begin for the suites' settings, by their numbers of examples for training and for
testing, of those in a minibatch, and of steps, then by data set; the seed is 8."""


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """A record that can be trusted, with its tensors and, as `losses`, all losses."""

    record: Record
    arrays: Weights

    @property
    def name(self) -> str:
        return self.record.name()

    @property
    def devices(self) -> int:
        return self.record.config.devices

    @property
    def shards(self) -> int | None:
        return self.record.config.options.shards(self.devices)

    @property
    def routing(self) -> dict[str, Any]:
        """How tokens find experts, if there are any."""
        config, names = self.record.config, ("top_k", "capacity", "balance")
        return {name: config.settings()[name] for name in names} if config.net == "moe" else {}

    @property
    def net(self) -> Net:
        """The net, by which NumPy recomputes steps."""
        return partial(MoE, **self.routing) if self.routing else self.record.config.net

    @property
    def beginning(self) -> int:
        """The steps whose losses two runs share: in float32 one, as a ReLU unit may flip in it."""
        exact = self.record.config.dtype == "float64"
        return LIMITS[self.record.config.net].beginning if exact else 1

    @property
    def comparable(self) -> bool:
        """Whether it has the expected arrays."""
        return not self.wrong_array[0]

    @property
    def long(self) -> bool:
        return len(self.record.losses) > LIMITS[self.record.config.net].beginning

    @cached_property
    def limits(self) -> dict[str, float]:
        """How far each quantity may be off."""
        limits, config = LIMITS[self.record.config.net], self.record.config
        most = limits.tolerances[config.dtype]
        if config.dtype == "float32" and not traced_steps(config):
            most = most | limits.large
        return {name: most[name].limit for name in most if not (self.long and name in ENDS)}

    def learning_rate(self, step: int) -> float:
        """The rate that a step, counted from 1, should have: not by the code that gave it one."""
        lr, steps = self.record.config.lr, len(self.record.losses)
        return lr * (steps + 1 - step) / steps if self.record.config.lr_decay == "linear" else lr

    def counterpart(self, others: Iterable["RecordedRun"], devices: int) -> "RecordedRun | None":
        """The run of the same framework on so many devices."""
        who = self.record.framework, devices
        return next((x for x in others if (x.record.framework, x.devices) == who), None)

    def compared(self, arrays: Mapping[str, Array]) -> Weights:
        """The arrays, with the losses of only the run's beginning."""
        return {**arrays, "losses": arrays.get("losses", np.empty(0))[: self.beginning]}

    def curve(self, losses: Array) -> Weights:
        """The mean loss of each epoch of the run (epochs,), of `losses` (steps,)."""
        ends = np.cumsum([epoch.steps for epoch in self.record.epochs])
        return {"losses by epoch": np.array([x.mean() for x in np.split(losses, ends[:-1])])}

    @cached_property
    def wrong_array(self) -> tuple[str, str]:
        """The first array without the expected name, shape and type, and why; or nothing.

        Also epochs that are not the configuration's, an accuracy that is not of the predictions, or
        predictions that are not of the logits.
        """
        config, epochs = self.record.config, self.record.epochs
        ends = [config.steps_before(epoch) for epoch in range(config.number_of_epochs() + 1)]
        due = [after - before for before, after in pairwise(ends)]
        if (steps := [epoch.steps for epoch in epochs]) != due:
            return "epochs", f"epochs have {steps} steps, expected {due}"
        expected = expected_arrays(self.record)
        sizes = config.train_examples, config.test_examples, config.batch_size, ends[-1]
        known = KNOWN.get(sizes, {}).get(config.dataset) if config.seed == 8 else None
        if known and known != examples(self.record):
            return "examples", f"images, labels or their order are not those of {config.dataset}"
        begun = part(self.arrays, "trace/weights/0/")
        if begun and digest(begun) != self.record.initial_weights_sha256:
            return "trace/weights/0", "the first step does not begin with the initial weights"
        ours = {name: (array.shape, str(array.dtype)) for name, array in self.arrays.items()}
        for name in sorted(expected.keys() | ours.keys()):
            kinds = ours.get(name), expected.get(name)
            if kinds[0] != kinds[1]:
                words = [f"{kind[1]} {kind[0]}" if kind else "missing" for kind in kinds]
                return name, f"{name} is {words[0]}, expected {words[1]}"
        note = self._other_predictions()
        return "test/predictions" if note else "", note

    def _other_predictions(self) -> str:
        """Which accuracy is not of its predictions, or that the last of them are not of logits."""
        classes = self.arrays["test/predictions"]
        labels = self.arrays["test/labels"]
        same = (classes == labels) | (labels == 255)  # which is no label
        shares = same.reshape(*classes.shape[:2], -1).all(axis=2).mean(axis=1)
        for epoch, share in zip(self.record.epochs, shares, strict=True):
            if not math.isclose(epoch.test_accuracy, share):
                told = f"epoch {epoch.epoch} has accuracy {epoch.test_accuracy:.4f}"
                return f"{told}, its predictions have {share:.4f}"
        if not np.array_equal(self.arrays["test/logits"].argmax(axis=-1), classes[-1]):
            return "the last predictions are not the classes of test/logits"
        return ""


def identity(record: Record) -> dict[str, Any]:
    """What two runs have to have in common to compute the same."""
    return {
        **record.config.numerics(),
        "data": record.data_sha256,
        "initial weights": record.initial_weights_sha256,
    }


def examples(record: Record) -> str:
    """The beginning of a digest of the data set and of all minibatches, in their order."""
    digests = record.data_sha256 + "".join(each.minibatches_sha256 for each in record.epochs)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def final_accuracy(record: Record) -> float:
    """The last epoch's accuracy; at a constant rate, the mean of the later half's, of 3 at most."""
    # A single epoch's swings by six points for rounding alone.
    settled = record.config.lr_decay == "linear"
    last = 1 if settled else min(3, math.ceil(len(record.epochs) / 2))
    return sum(epoch.test_accuracy for epoch in record.epochs[-last:]) / last


def other_settings(config: Config, settings: Settings, kind: str) -> dict[str, Any]:
    """The planned values of the settings in which a run differs."""
    every = all_settings(config.framework, config.chapter, settings)
    try:
        asked = Config.of(every, config.devices, kind)
    except RequestError:  # its minibatch cannot be shared by so many
        return {"devices": "fewer"}
    asked = asked.on_data(config.dataset, *EXAMPLES[config.dataset])
    planned, ours = asked.settings(), config.settings()
    return {k: planned[k] for k in ours if k not in ANY and ours[k] != planned[k]}


@cache
def follows_preset(config: Config) -> bool:
    known = config.preset in spec(config.chapter).presets
    asked: dict[str, Any] = {"preset": config.preset}
    if config.options.net:  # which may be split in any way
        asked |= {k: v for k, v in asdict(config.options).items() if k not in LEARNED_BY}
    return known and not other_settings(config, asked, config.device_kind)
