"""Python for the pages with explorers: Pyodide, which npm has, and the project's own packages.

    python -m notebooks.web.runtime

fetches Pyodide into `.nox`, once. Without it the site is built with pictures that do not change.
"""

import subprocess
import tarfile
from contextlib import suppress
from hashlib import sha512
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from notebooks.text.sources import ROOT

VERSION: Final = "314.0.0"

DIGEST: Final = (
    "588a1f4507a163bf080bd9f7fa9f423a32946460821dfaefb51e5d5ca9b40472"
    "1652e9f607c0c17f5eeb5f2b4c17f29892bb034116be0431a18bc50ac33694df"
)
"""SHA-512 of the package, which is checked before anything of it is used."""

PACKAGE: Final = ROOT / ".nox" / f"pyodide-{VERSION}.tgz"

PARTS: Final = (
    *("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm"),
    *("python_stdlib.zip", "pyodide-lock.json"),
)


def is_there() -> bool:
    """Whether Pyodide has been fetched, and is the one that is pinned."""
    return PACKAGE.exists() and sha512(PACKAGE.read_bytes()).hexdigest() == DIGEST


def fetch() -> bool:
    """Fetches Pyodide unless it is there; whether it is there then."""
    if not is_there():
        PACKAGE.parent.mkdir(exist_ok=True)
        command = ["npm", "pack", f"pyodide@{VERSION}", f"--pack-destination={PACKAGE.parent}"]
        command += ["--silent", "--fetch-retries=0"]
        with suppress(FileNotFoundError):  # there is no npm
            subprocess.run(command, capture_output=True, check=False)
    return is_there()


def bring(assets: Path) -> None:
    """Puts Pyodide, and the modules that explorers may import, into a folder of a site."""
    folder = assets / "pyodide"
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(PACKAGE) as package:
        for part in PARTS:
            if content := package.extractfile(f"package/{part}"):
                (folder / part).write_bytes(content.read())
    with ZipFile(assets / "explorers.zip", "w", ZIP_DEFLATED) as archive:
        for path in [*ROOT.glob("common/**/*.py"), *ROOT.glob("notebooks/**/*.py")]:
            archive.write(path, path.relative_to(ROOT))


if __name__ == "__main__" and not fetch():
    print(
        "figures to explore are pictures that do not change: npm has not brought the pinned Pyodide"
    )
