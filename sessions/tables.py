"""Tables in docs/ that programs write."""

from pathlib import Path

from common.base.files import write_text


def put(path: Path, name: str, program: str, text: str) -> None:
    """Puts a text between the lines of a page that begin and end the table of this name."""
    before, _, after = parts(path, name, program)
    write_text(path, f"{before}\n\n{text}\n\n{after}")


def parts(path: Path, name: str, program: str) -> tuple[str, str, str]:
    """What a page has before a table, up to the line that begins it; the table; what follows."""
    begin, end = f"<!-- {name}: {program} -->", f"<!-- {name} end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    text, after = rest.split(end)
    return before + begin, text.strip(), end + after
