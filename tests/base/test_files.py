"""Files appear whole or not at all, and never in the place of what is no file; and locks."""

import errno
import fcntl
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from common.base.errors import BusyError, RequestError
from common.base.files import held, require_file, write_atomically, write_text


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


def test_a_name_is_held_once_also_if_the_last_holder_removes_the_lock_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, folder = fcntl.flock, tmp_path / "new"

    def too_late(file: int, operation: int) -> None:
        monkeypatch.undo()
        (folder / ".x.lock").unlink()
        lock(file, operation)

    monkeypatch.setattr("fcntl.flock", too_late)
    busy = f"^another run is writing x in {folder}: wait for it, or choose another folder$"
    with held(folder, "x"), held(folder, "y"):
        with pytest.raises(BusyError, match=busy), held(folder, "x", timeout=0.1):
            pass
        assert {path.name for path in folder.iterdir()} == {".x.lock", ".y.lock"}
    assert not list(folder.iterdir())


def test_no_lock_follows_a_link_or_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".x.lock").symlink_to("target")
    (tmp_path / ".y.lock").mkdir()
    for name in ("x", "y"):
        with pytest.raises(OSError, match=f".{name}.lock"), held(tmp_path, name):
            pass
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def none(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", none)
    with held(tmp_path, "x"), held(tmp_path, "x", timeout=0.1):
        pass
    assert not list(tmp_path.iterdir())
