"""The record of a run that is about to start."""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from common.backends.devices import Process
from common.backends.driver import count_cards, find_driver
from common.backends.loading import package
from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.machine import describe_machine
from common.data.dataset import Dataset
from common.models.weights_file import digest
from common.records.fingerprint import ROOT, source_digest, versions
from common.records.record import Cluster, Failure, Record
from common.settings.config import Config
from common.terminal.text import gist, storable

VISIBLE: Final = os.environ.get("CUDA_VISIBLE_DEVICES")
"""As it was in the beginning: a run hides the GPUs that it does not use."""


def gpus_here() -> dict[str, str | int]:
    """The GPUs that a run could choose from, and NVIDIA's driver."""
    if isinstance(found := find_driver(VISIBLE), str):  # the framework may see more
        return {"gpus": "unknown", "driver": "unknown"}
    return {"gpus": count_cards(found.cards), "driver": found.version}


def new_record(
    config: Config,
    data: Dataset,
    weights: Weights,
    devices: Sequence[str],
    command_line: Sequence[str],
    started: str,
    environment: dict[str, str],
) -> Record:
    """The record of a run that is about to start."""
    return Record(
        framework=config.framework,
        chapter=config.chapter,
        status="running",
        command=["python", "-m", f"frameworks.{config.framework}.{config.chapter}", *command_line],
        started=started,
        machine=describe_machine() | (gpus_here() if config.device_kind == "gpu" else {}),
        environment=environment,
        versions=versions(("numpy", *package(config.framework).DISTRIBUTIONS)),
        source_sha256=source_digest(config.framework),
        devices=list(devices),
        config=config,
        data_sha256=data.digest(),
        initial_weights_sha256=digest(weights),
    )


def cluster(launcher: str, config: Config, process: Process) -> Cluster | None:
    """The processes of a run over hosts; None if there is one host."""
    if not process.hosts:
        return None
    settings = config.settings()
    how = settings.get("allreduce") or settings.get("wrapper", "")
    about = package(config.framework)
    return Cluster(
        launcher=launcher,
        hosts=list(process.hosts),
        engine=about.ENGINES.get(how, about.ENGINES[config.chapter]),
        transport=about.TRANSPORTS[config.device_kind],
    )


def failure_of(error: BaseException) -> Failure:
    """The error that ended a run, without the paths of a machine."""
    ours = isinstance(error, RequestError | RunError)
    message = str(error) if ours else f"{type(error).__name__}: {gist(str(error))}"
    text = "".join(traceback.format_exception(error))
    text = text.replace(str(ROOT), ".").replace(sys.prefix, "...")
    failure = Failure(message=storable(message), traceback=storable(text))
    if isinstance(error, RunError):
        failure.step, failure.tensor, failure.device = error.step, error.tensor, error.device
    return failure
