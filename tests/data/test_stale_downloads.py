"""What downloads have left that were killed does not pile up in the cache."""

import os
import time
from pathlib import Path

import pytest

from common.data.download import SHA256, STALE, DownloadError, download


def test_what_nobody_writes_to_any_more_is_removed(tmp_path: Path) -> None:
    name = next(iter(SHA256))
    stale, other, fresh = (
        tmp_path / each for each in (f".{name}.abcd_123", ".another.abcd_123", f".{name}.abcd_124")
    )
    for path in (stale, other, fresh):
        path.touch()
    for path in (stale, other):
        os.utime(path, (old := time.time() - STALE - 1, old))
    with pytest.raises(DownloadError):
        download(tmp_path, print, progress=False, mirrors=[])
    assert set(tmp_path.iterdir()) == {other, fresh}
