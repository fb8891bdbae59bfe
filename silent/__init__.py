"""What frameworks get wrong without a word, one file a case.

Another case is a file FRAMEWORK_NAME.py, and a section of docs/silent.md with what it prints.
"""

import common as common  # it says where the project does not run, before a package is missed
