"""Stands in for the package where a case is run as a file: the path begins with this folder."""

import sys
from pathlib import Path

__path__ = [str(Path(__file__).parent)]
sys.path.insert(0, str(Path(__file__).parents[1]))

import common as common
