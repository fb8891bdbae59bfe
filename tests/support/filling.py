"""A command that fills a data cache from a mirror of the tests: `python filling.py FOLDER URL`."""

import hashlib
import sys
from pathlib import Path

from mirrors import CONTENTS

from common.data.download import SHA256, DownloadError, download


def main() -> int:
    """Returns 0 once all four files are there, and 1 if they cannot be had."""
    folder, mirror = sys.argv[1:]
    SHA256.update({name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()})
    try:
        download(Path(folder), print, progress=False, mirrors=[mirror])
    except DownloadError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
