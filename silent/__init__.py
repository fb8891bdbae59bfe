"""Cases in which frameworks are silently wrong, one file each.

Another case is a file FRAMEWORK_NAME.py, and a section of docs/silent.md with what it prints.
"""

import common as common  # it says where the project does not run, before a package is missed
