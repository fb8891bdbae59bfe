"""Files appear whole or not at all."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest

from common.base.errors import RequestError
from common.base.files import require_writable, sha256, write_atomically


def fill(path: Path) -> None:
    path.write_text("new")


def test_writes_a_new_file_and_replaces_an_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, fill)
    assert path.read_text() == "new"
    path.write_text("old and longer")
    write_atomically(path, fill)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [OSError, ValueError, KeyboardInterrupt])
def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_else(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half of the n")
        raise failure

    with pytest.raises(failure):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_content_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    seen = []

    def watch(temporary: Path) -> None:
        fill(temporary)
        seen.append((temporary.parent, path.read_text()))

    write_atomically(path, watch)
    assert seen == [(tmp_path, "old")]


def test_a_name_that_is_a_folder_fails_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(folder, fill)
    assert list(tmp_path.rglob("*")) == [folder]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_others_may_read_what_the_umask_allows(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file", fill)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_mode_and_its_owner(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with suppress(PermissionError):  # only root may
        os.chown(path, 1234, 2345)
    path.chmod(mode)
    before = path.stat()
    write_atomically(path, fill)
    after = path.stat()
    assert after.st_mode & 0o777 == mode
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)


@pytest.mark.parametrize("letter", "xé…\N{ANGER SYMBOL}")
def test_the_longest_names_can_be_written(tmp_path: Path, letter: str) -> None:
    path = tmp_path / (letter * (255 // len(letter.encode())))
    write_atomically(path, fill)
    assert path.read_text() == "new"


def test_content_that_does_not_reach_the_disk_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr("common.base.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, fill)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_could_be_made_is_left_to_whoever_writes_first(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    require_writable(folder)
    assert not list(tmp_path.iterdir())
    write_atomically(folder / "file", lambda path: path.write_text("whole"))
    assert (folder / "file").read_text() == "whole"


@pytest.mark.parametrize("name", ["file", "file/below", "file/far/below", "x" * 300])
def test_what_cannot_be_a_folder_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(RequestError, match="choose another folder") as caught:
        require_writable(tmp_path / name)
    assert f"cannot write to {tmp_path / name}: " in str(caught.value)
    assert (tmp_path / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_folder_that_takes_no_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("common.base.files.tempfile.TemporaryFile", refuse)
    with pytest.raises(RequestError, match=f"cannot write to {tmp_path}: Permission denied"):
        require_writable(tmp_path)


def test_sha256_is_that_of_the_content(tmp_path: Path) -> None:
    path, content = tmp_path / "file", bytes(range(256)) * 1000
    path.write_bytes(content)
    assert sha256(path) == hashlib.sha256(content).hexdigest()
