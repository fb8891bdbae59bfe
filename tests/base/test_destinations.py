"""Where a file is written: links are followed, and what is no file is left as it is."""

import os
import socket
import stat
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


def lying_in(folder: Path) -> dict[str, object]:
    """Everything below a folder: what it is, which it is, and what it holds."""
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else None
        link = path.readlink() if path.is_symlink() else None
        found[str(path)] = state.st_ino, state.st_mode, state.st_rdev, content, link
    return found


def device(path: Path) -> None:
    """A node like that of /dev/null."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # the whole path may be too long for a socket


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a socket": bound,
    "a device": device,
}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_and_stays(tmp_path: Path, kind: str, linked: bool) -> None:
    path = tmp_path / "x"
    NO_FILES[kind](path)
    if linked:
        path = tmp_path / "link"
        path.symlink_to("x")
    before = lying_in(tmp_path)
    with pytest.raises(OSError, match=f"it is {kind}, not a file: '{path}'"):
        write_text(path, "new")
    with pytest.raises(RequestError) as caught:
        require_file(path, "--flag")
    assert str(caught.value).startswith(f"--flag: cannot write to {path}: it is {kind}, not a file")
    assert lying_in(tmp_path) == before


@pytest.mark.parametrize("target", ["../real/file", "chain", "missing"])
def test_a_link_is_followed_and_stays(tmp_path: Path, target: str) -> None:
    for name in ("links", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "real/file").write_text("old")
    (tmp_path / "links/chain").symlink_to(tmp_path / "real/file")
    link = tmp_path / "links/link"
    link.symlink_to(target)
    seen = []

    def write(temporary: Path) -> None:
        seen.append(temporary.parent)
        temporary.write_text("new")

    require_file(link, "--flag")
    write_atomically(link, write)
    assert link.readlink() == Path(target)
    assert link.read_text() == "new"
    assert seen == [link.resolve().parent]
    assert len(list(tmp_path.rglob("*"))) == 5 + (target == "missing")


LOST = {
    "a loop": ("loop", "Too many levels of symbolic links"),
    "below a loop": ("loop/file", "Too many levels of symbolic links"),
    "a link to a file whose folder is missing": ("lost", "the link .*lost leads nowhere"),
    "below a folder that is missing": ("folder/file", "the link .*folder leads nowhere"),
    "far below": ("folder/a/b/file", "the link .*folder leads nowhere"),
}


@pytest.mark.parametrize(("name", "why"), LOST.values(), ids=LOST.keys())
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("missing/file")
    (tmp_path / "folder").symlink_to("missing")
    with pytest.raises(RequestError, match=f"^--flag: cannot write to {tmp_path / name}: {why}; "):
        require_file(tmp_path / name, "--flag")
    with pytest.raises(OSError, match=why):
        write_text(tmp_path / name, "new")
    assert {path.name for path in tmp_path.rglob("*")} == {"loop", "lost", "folder"}


@pytest.mark.parametrize("name", ["missing/../folder", f"missing/../{'x' * 256}"])
def test_a_detour_hides_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(RequestError, match=r"it is a folder|File name too long"):
        require_file(tmp_path / name, "--flag")


def test_a_folder_may_be_a_link_if_it_leads_to_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    for name, target in {"good": "real", "loop": "loop", "lost": "missing"}.items():
        (tmp_path / name).symlink_to(target)
    require_writable(tmp_path / "good/new")
    with pytest.raises(RequestError, match=r"loop: Too many levels of symbolic links; choose"):
        require_writable(tmp_path / "loop")
    with pytest.raises(RequestError, match=r"lost: the link .*lost leads nowhere; choose"):
        require_writable(tmp_path / "lost")
    with pytest.raises(RequestError, match=r"lost/new: the link .*lost leads nowhere; choose"):
        require_writable(tmp_path / "lost/new")


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


ALIKE = {
    "the same": ("new/a", "new/a"),
    "by a detour": ("new/a", "old/../new/b/../a"),
    "relative and absolute": ("new/a", "{here}/new/a"),
    "by a linked folder": ("old/a", "link/a"),
    "by a linked folder, below it": ("old/new/a", "link/new/a"),
    "by a linked file": ("old/file", "symbolic"),
    "by a linked file that is not there yet": ("old/a", "early"),
    "a hard link": ("old/file", "hard"),
    "the other's folder": ("new/a", "new"),
    "below the other": ("new", "new/a/b"),
}


@pytest.fixture
def spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, now the working directory, in which files have several names."""
    monkeypatch.chdir(tmp_path)
    Path("old").mkdir()
    Path("old/file").touch()
    Path("hard").hardlink_to("old/file")
    for name, target in {"link": "old", "symbolic": "old/file", "early": "old/a"}.items():
        Path(name).symlink_to(target)
    return tmp_path


@pytest.mark.parametrize(("one", "other"), ALIKE.values(), ids=ALIKE.keys())
def test_one_file_is_known_by_every_spelling(spellings: Path, one: str, other: str) -> None:
    other = other.format(here=spellings)
    with pytest.raises(RequestError, match=f"^--flag {other} is where the record goes: name"):
        require_apart({"it": Path("apart"), "the record": Path(one), "--flag": Path(other)})


def test_files_that_are_apart_are_let_pass(spellings: Path) -> None:
    names = ["a", "b", "ab", "old/a", "old/b", "old/file", "new/a", "new/c/a", "new/c/b"]
    require_apart({name: Path(name) for name in names})
