"""Hostile files for every reader of the project, millions of them, led by coverage."""

import common as common  # it says where the project does not run, before a package is missed
