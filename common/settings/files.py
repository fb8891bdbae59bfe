"""Where a run writes, and from which checkpoint it resumes: nothing that a number depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from common.base.errors import RequestError
from common.base.files import require_file, require_writable


@dataclass(frozen=True)
class Files:
    """The flags of files and checkpoints, by their names; with `quiet`, nothing is reported."""

    out: Path
    quiet: bool = False
    save_weights: Path | None = None
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    resume_from: Path | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Those among the settings. Raises RequestError if they do not go together."""
        files = cls(**{each.name: settings[each.name] for each in fields(cls)})
        if files.resume_from is not None and files.resume_from.is_dir():
            instead = "name a file in it, or resume with --checkpoint-dir and --resume"
            raise RequestError(f"--resume-from: {files.resume_from} is a folder: {instead}")
        for flag in ("resume", "checkpoint_every"):
            if getattr(files, flag) and files.checkpoint_dir is None:
                name = flag.replace("_", "-")
                raise RequestError(f"--{name} needs --checkpoint-dir: say where checkpoints are")
        return files

    def folders(self) -> tuple[Path, Path]:
        """The folder of the record, and that of the checkpoints; they may be one."""
        return self.out, self.checkpoint_dir or self.out

    def require_output_paths(self, record: str = "") -> None:
        """Raises RequestError if what the run leaves could not be written in the end.

        The name of the `record` depends on the number of devices, which may not be known yet.
        """
        for folder in self.folders():
            require_writable(folder)
        written = []
        if record:
            path = self.out / record
            written = [path, path.with_suffix(".safetensors")]
        for path in written:
            require_file(path, "--out")
        if (weights := self.save_weights) is not None:
            require_file(weights, "--save-weights")
            if weights.resolve() in [path.resolve() for path in written]:
                raise RequestError(f"--save-weights {weights} is a file of --out: name another one")
