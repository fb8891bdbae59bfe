"""The package `common`, for a file that is started by its path: its folder is searched first."""

import sys
from importlib import import_module
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
del sys.modules["common"]
import_module("common")
