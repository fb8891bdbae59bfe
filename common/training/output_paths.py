"""Whether what a run leaves could be written in the end: asked before any work."""

import os
from pathlib import Path

from common.base.errors import RequestError
from common.base.files import (
    destination,
    require_apart,
    require_file,
    require_folder,
    require_writable,
)
from common.base.locks import lock_of
from common.records.record import files_of, record_name
from common.settings.request import Request


def require_output_paths(request: Request, devices: int | None = None) -> None:
    """Raises RequestError if what the run leaves could not be written in the end.

    The number of devices, which the names of the record have, may not be known yet.
    """
    require_writable(request.out)
    if request.checkpoint_dir is not None:
        require_folder(request.checkpoint_dir, "--checkpoint-dir")
    devices = devices or request.devices
    way = request.options.way()
    record = request.out / record_name(request.framework, request.chapter, devices or 0, way)
    beside = record.with_suffix(".safetensors")
    written = {"the record": record, "its file of tensors": beside} if devices else {}
    for path in written.values():
        require_file(path, "--out")
    if request.save_weights is not None:
        require_file(request.save_weights, "--save-weights")
        written["--save-weights"] = request.save_weights
        _require_kept(request, request.save_weights)
    require_apart(written)
    if request.save_weights is not None and devices:
        _require_free(request, request.save_weights, record.stem)


def _require_kept(request: Request, path: Path) -> None:
    """Raises RequestError if the run would replace what it has to begin from, should it go on."""
    begun = request.checkpoint_dir is not None and request.init_weights
    if begun and os.path.realpath(begun) == os.path.realpath(path):
        raise RequestError(
            f"--save-weights {path} would replace --init-weights, "
            "which --resume needs once more: name another file"
        )


def _require_free(request: Request, path: Path, name: str) -> None:
    """Raises RequestError if a run of this name would itself remove or replace what is at `path`.

    Checkpoints, second names and locks come and go.
    """
    file = destination(path)
    folders = (request.out, request.checkpoint_dir or request.out)
    if file.parent in {Path(os.path.realpath(folder)) for folder in folders} and (
        files_of(name).fullmatch(file.name) or file.name == lock_of(name)
    ):
        raise RequestError(
            f"--save-weights {path} has a name that the run uses itself: name another file"
        )
