"""Stands in for the package where a case is run as a file, as an editor does.

Python's path then begins with the folder of the case, and has not that of the project.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
__path__ = [str(FOLDER)]
sys.path.insert(0, str(FOLDER.parent))

import common as common  # noqa: E402
