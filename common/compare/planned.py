"""What a suite or a preset sets: every setting that decides numbers, for one framework."""

from functools import cache
from typing import Any, Final

from common.base.errors import RequestError
from common.chapters.chapters import SPECS, SUITES
from common.chapters.suites import Suite
from common.settings.arguments import all_settings
from common.settings.config import Config

ANY: Final = {"framework", "chapter", "devices", "threads", "deterministic", "preset", "dataset"}
"""Settings that a suite leaves open. All others decide what is computed, or by which means."""

EXAMPLES: Final = {
    "fashion-mnist": (60_000, 10_000),
    "synthetic": (12_800, 2_000),
}
"""The sizes of the data sets: a preset that names no number of examples takes all."""


@cache
def suite_of(config: Config) -> Suite | None:
    """The suite that a run of this configuration belongs to, if there is one."""
    return next((suite for suite in SUITES if not other_settings(config, suite)), None)


@cache
def preset_of(config: Config) -> str | None:
    """The preset that a run follows in everything, if there is one."""
    for name in SPECS[config.chapter].presets:
        suite = Suite(config.chapter, name, ".", (), (), {"preset": name}, kind=config.device_kind)
        if not other_settings(config, suite):
            return name
    return None


def other_settings(config: Config, suite: Suite) -> dict[str, Any]:
    """The settings in which a run differs from those of a suite, and what the suite asks for."""
    if config.chapter != suite.chapter:
        return {"chapter": suite.chapter}
    try:
        given = all_settings(config.framework, suite.chapter, suite.settings)
        where = config.devices, suite.kind, config.dataset, EXAMPLES[config.dataset]
        asked = Config.of(given, *where).settings()
    except RequestError:  # its minibatch cannot be shared by so many
        return {"devices": "fewer"}
    found = config.settings()
    return {name: asked[name] for name in found if name not in ANY and found[name] != asked[name]}
