"""Whether what a run leaves could be written in the end: asked before any work."""

from common.base.files import require_apart, require_file, require_writable
from common.records.record import record_name
from common.settings.request import Request


def require_output_paths(request: Request, devices: int | None = None) -> None:
    """Raises RequestError if what the run leaves could not be written in the end.

    The number of devices, which the names of the record have, may not be known yet.
    """
    for folder in (request.out, request.checkpoint_dir or request.out):
        require_writable(folder)
    written = {}
    if devices := devices or request.devices:
        way = request.options.way()
        record = request.out / record_name(request.framework, request.chapter, devices, way)
        written = {"the record": record, "its file of tensors": record.with_suffix(".safetensors")}
    for path in written.values():
        require_file(path, "--out")
    if request.save_weights is not None:
        require_file(request.save_weights, "--save-weights")
        written["--save-weights"] = request.save_weights
    require_apart(written)
