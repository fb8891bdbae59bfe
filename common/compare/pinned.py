"""What a suite or a preset sets: every setting that decides numbers, for one framework."""

from functools import cache
from pathlib import Path
from typing import Any, Final

from common.base.errors import RequestError
from common.compare.suites import SUITES, Suite
from common.settings.arguments import parser
from common.settings.chapters import PRESETS
from common.settings.config import Config, preset_name, with_preset

DECIDING: Final = (
    "batch_size",
    "lr",
    "lr_decay",
    "epochs",
    "steps",
    "seed",
    "dtype",
    "allreduce",
    "width",
    "batch_norm",
    "wrapper",
    "layers",
    "train_examples",
    "test_examples",
    "init_weights",
)
"""Settings that decide what is computed, or that say by which means a suite has it computed."""

EXAMPLES: Final = {
    "fashion-mnist": {"train_examples": 60_000, "test_examples": 10_000},
    "synthetic": {"train_examples": 12_800, "test_examples": 2_000},
}
"""The sizes of the data sets: a preset that names no number of examples takes all."""


def pinned(suite: Suite, framework: str, devices: int, dataset: str) -> dict[str, Any]:
    """The settings of a run of a suite, as its flags and its preset make them."""
    flags = parser(framework, suite.chapter).parse_args(suite.flags(devices, Path()))
    preset = preset_name(suite.chapter, flags)
    filled = vars(with_preset(suite.chapter, flags, preset, devices))
    settings = {name: filled.get(name) for name in DECIDING} | {
        "layers": filled.get("layers", False)
    }
    for name, all_there_are in EXAMPLES[dataset].items():
        wanted = settings[name] or getattr(PRESETS[suite.chapter][preset], name)
        settings[name] = min(wanted or all_there_are, all_there_are)
    return settings


@cache
def suite_of(config: Config) -> Suite | None:
    """The suite of which a run of this configuration is; None if it is of none."""
    return next((suite for suite in SUITES if not other_settings(config, suite)), None)


@cache
def preset_of(config: Config) -> str | None:
    """The preset that a run follows in everything; None if it is of another setting."""
    for name in PRESETS.get(config.chapter, {}):
        suite = Suite(config.chapter, name, ".", (), (), {"preset": name})
        if not other_settings(config, suite):
            return name
    return None


def other_settings(config: Config, suite: Suite) -> dict[str, Any]:
    """The settings in which a run differs from those of a suite, and what the suite asks for."""
    if config.chapter != suite.chapter:
        return {"chapter": suite.chapter}
    try:
        asked = pinned(suite, config.framework, config.devices, config.dataset)
    except RequestError:  # its minibatch cannot be shared by so many
        return {"devices": "fewer"}
    return {name: value for name, value in asked.items() if getattr(config, name) != value}
