"""Files appear whole or not at all, and never in the place of what is no file."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from common.base.errors import RequestError
from common.base.files import require_file, write_atomically, write_text


@pytest.mark.parametrize("failure", [KeyboardInterrupt, None])
def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException] | None
) -> None:
    """Some disks say only then that they are full."""
    path = tmp_path / "file"
    path.write_text("old and longer")

    def write(temporary: Path) -> None:
        temporary.write_text("half of the n")
        assert path.read_text() == "old and longer"
        if failure:
            raise failure

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("common.base.files.os.fsync", full)
    with pytest.raises(failure or OSError):
        write_atomically(path, write)
    assert path.read_text() == "old and longer"
    assert list(tmp_path.iterdir()) == [path]


REFUSED: dict[str, Callable[[Path], object]] = {
    "it is a folder, not": Path.mkdir,
    "it is a pipe or a device, not": os.mkfifo,
    "the file is write-protected": partial(Path.touch, mode=0o444),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_may_not_be_replaced_is_refused_and_stays(tmp_path: Path, why: str) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    REFUSED[why](path)
    link.symlink_to("x")
    before = path.lstat().st_ino
    with pytest.raises(OSError, match=f"{why}.*: '{link}'"):
        write_text(link, "new")
    with pytest.raises(RequestError, match=f"^--flag: cannot write to {link}: {why}"):
        require_file(link, "--flag")
    assert path.lstat().st_ino == before


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to("file")
    for content in ("new", "newer"):
        require_file(link, "--flag")
        write_text(link, content)
        assert (link.readlink(), path.read_text()) == (Path("file"), content)
