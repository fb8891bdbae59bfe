"""Files appear whole or not at all, and never in the place of what is no file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from common.base.errors import RequestError
from common.base.files import (
    require_apart,
    require_file,
    require_writable,
    write_atomically,
    write_text,
)


def fill(path: Path) -> None:
    path.write_text("new")


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
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
    path.write_text("old and longer")
    seen = []

    def watch(temporary: Path) -> None:
        fill(temporary)
        seen.append((temporary.parent, path.read_text()))

    write_atomically(path, watch)
    assert seen == [(tmp_path, "old and longer")]
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_others_may_read_what_the_umask_allows_and_a_private_file_stays_private(
    tmp_path: Path, mask: int
) -> None:
    path = tmp_path / "file"
    before = os.umask(mask)
    try:
        write_atomically(path, fill)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o600)
    write_atomically(path, fill)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("…" * 85)
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


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_what_cannot_be_a_folder_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("old")
    require_writable(tmp_path / "a" / "b")
    with pytest.raises(RequestError, match="choose another folder") as caught:
        require_writable(tmp_path / name)
    assert f"cannot write to {tmp_path / name}: " in str(caught.value)
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe or a device": os.mkfifo,
}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_and_stays(tmp_path: Path, kind: str, linked: bool) -> None:
    path = real = tmp_path / "x"
    NO_FILES[kind](path)
    if linked:
        path = tmp_path / "link"
        path.symlink_to("x")
    before = real.lstat().st_ino
    with pytest.raises(OSError, match=f"it is {kind}, not a file: '{path}'"):
        write_text(path, "new")
    with pytest.raises(RequestError) as caught:
        require_file(path, "--flag")
    assert str(caught.value).startswith(f"--flag: cannot write to {path}: it is {kind}, not a file")
    assert real.lstat().st_ino == before


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_and_stays(tmp_path: Path, there: bool) -> None:
    for name in ("links", "real"):
        (tmp_path / name).mkdir()
    if there:
        (tmp_path / "real/file").write_text("old")
    link = tmp_path / "links/link"
    link.symlink_to("../real/file")
    require_file(link, "--flag")
    write_atomically(link, fill)
    assert link.readlink() == Path("../real/file")
    assert (tmp_path / "real/file").read_text() == "new"
    assert len(list(tmp_path.rglob("*"))) == 4


def test_a_file_that_is_write_protected_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr("common.base.files.os.access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(RequestError, match=r"--flag: .*file: the file is write-protected"):
        require_file(path, "--flag")
    with pytest.raises(PermissionError):
        write_text(path, "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("one", "other"),
    [("new/a", "new/a"), ("new/a", "{here}/new/a"), ("old/a", "link/a"), ("new", "new/a/b")],
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
