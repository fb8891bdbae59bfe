"""What a record says of a run that failed, wherever on its way that was."""

from contextlib import suppress

from common.backends.devices import Process
from common.base.errors import BusyError, RequestError, RunError, StoppedError
from common.base.locks import LOCK_TIMEOUT, held
from common.records.new import failure_of
from common.records.record import ANY, Record, record_name
from common.records.store import read_record, unfinished
from common.training.job import Job


def mark_failed(job: Job, error: BaseException) -> None:
    """Says so in the record of this run, unless it is complete or failed.

    A request that was refused before the run had begun leaves everything as it was, and so does a
    run while another one holds its name.
    """
    if isinstance(error, BusyError):  # what is there is the other run's
        return
    stopped = isinstance(error, StoppedError | KeyboardInterrupt)
    ended = {"status": "interrupted" if stopped else "failed"}
    with suppress(Exception):  # what ended the run is what matters
        begun = record = _begun(job)
        if record is None and not isinstance(error, RequestError):
            record = _not_begun(job)
        # All may have stopped in order but one that was lost meanwhile: the loss is what counts.
        if record is None or record.status not in ("running", "interrupted"):
            return
        # A process of this run may need a moment to let go.
        with held(job.request.out, record.name(), LOCK_TIMEOUT if begun else 0):
            if not begun or _begun(job):
                failure = None if stopped else failure_of(error)
                job.write(record.model_copy(update={**ended, "failure": failure}))


def _begun(job: Job) -> Record | None:
    """The record that the run has left so far."""
    request = job.request
    first = request.out / record_name(
        request.framework, request.chapter, ANY, request.options.way()
    )
    for pattern in (unfinished(first).name, first.name):
        for path in first.parent.glob(pattern):
            with suppress(RunError):
                found = read_record(path)
                if (found.started, found.command[3:]) == (job.started, job.command_line):
                    return found
    return None


def _not_begun(job: Job) -> Record | None:
    """The record of a run that ended before it had left one.

    None if it is not known how many devices it would have had.
    """
    request = job.request
    count, kind = request.devices or 0, "gpu" if request.device_kind == "gpu" else "cpu"
    if not job.launcher:  # else others have devices, too, and nobody waits for a framework to load
        with suppress(Exception):  # a framework may not make its devices twice
            devices = job.chapter().devices(Process(), request.wanted)
            count, kind = len(devices.names), devices.kind
    if not count:
        return None
    config, data = job.settled(count, kind)
    return job.new_record(config, data, job.initial_weights(config), [])
