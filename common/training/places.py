"""Whether what a run leaves could be written in the end: asked before any work."""

from common.base.files import require_apart, require_file, require_folder, require_writable
from common.records.record import record_name
from common.settings.request import Request


def require_places(request: Request, devices: int | None = None) -> None:
    """Raises RequestError if what the run leaves could not be written in the end.

    The number of devices, which the names of the record have, may not be known yet.
    """
    require_writable(request.out)
    if request.checkpoint_dir is not None:
        require_folder(request.checkpoint_dir, "--checkpoint-dir")
    devices = devices or request.devices
    record = request.out / record_name(request.framework, request.chapter, devices or 0)
    beside = record.with_suffix(".safetensors")
    written = {"the record": record, "its file of tensors": beside} if devices else {}
    for path in written.values():
        require_file(path, "--out")
    if request.save_weights is not None:
        require_file(request.save_weights, "--save-weights")
        written["--save-weights"] = request.save_weights
    require_apart(written)
