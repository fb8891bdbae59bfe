"""Files appear whole or not at all, and never in the place of what is no file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.base.errors import RequestError
from common.base.files import (
    require_apart,
    require_file,
    write_atomically,
    write_text,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is there already."""
    path = tmp_path / "file"
    path.write_text("old and longer")
    return path


def fill(path: Path) -> None:
    path.write_text("new")


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("failure", [KeyboardInterrupt, None])
def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException] | None
) -> None:
    """It may fail at the very end: some disks say only then that they are full."""

    def write(temporary: Path) -> None:
        temporary.write_text("half of the n")
        assert path.read_text() == "old and longer"
        if failure:
            raise failure

    monkeypatch.setattr("common.base.files.os.fsync", full)
    with pytest.raises(failure or OSError):
        write_atomically(path, write)
    assert path.read_text() == "old and longer"
    assert list(path.parent.iterdir()) == [path]


def test_others_may_read_what_the_umask_allows_and_a_private_file_stays_private(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_atomically(path, fill)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    write_atomically(path, fill)
    assert path.stat().st_mode & 0o777 == 0o600


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe or a device": os.mkfifo,
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    NO_FILES[kind](path)
    link.symlink_to("x")
    before = path.lstat().st_ino
    with pytest.raises(OSError, match=f"it is {kind}, not a file: '{link}'"):
        write_text(link, "new")
    with pytest.raises(RequestError, match=f"^--flag: cannot write to {link}: it is {kind}, not"):
        require_file(link, "--flag")
    assert path.lstat().st_ino == before


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to("file")
    for content in ("new", "newer"):
        require_file(link, "--flag")
        write_text(link, content)
        assert (link.readlink(), path.read_text()) == (Path("file"), content)


def test_a_file_that_is_write_protected_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.base.files.os.access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(RequestError, match=r"--flag: .*file: the file is write-protected"):
        require_file(path, "--flag")
    with pytest.raises(PermissionError):
        write_text(path, "new")


@pytest.mark.parametrize(
    ("one", "other"), [("new/a", "{here}/new/a"), ("old/a", "link/a"), ("new", "new/a/b")]
)
def test_one_file_is_known_by_every_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, other: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old").mkdir()
    Path("link").symlink_to("old")
    other = other.format(here=tmp_path)
    with pytest.raises(RequestError, match=f"^--flag {other} is where the record goes: name"):
        require_apart({"it": Path("apart"), "the record": Path(one), "--flag": Path(other)})
    require_apart({name: Path(name) for name in ("a", "ab", "old/a", "new/a", "new/c/a")})
