"""Whether what a command needs is installed: a notebook's environment is not a framework's."""

import sys
from importlib.util import find_spec


def require(*packages: str) -> None:
    """Ends the program with a line, and status 2, if one of these packages is not there."""
    if missing := [each for each in packages if find_spec(each) is None]:
        print(
            f"error: {', '.join(missing)} cannot be imported here: `nox -s notebooks` and "
            "`nox -s site` install what notebooks and site need",
            file=sys.stderr,
        )
        raise SystemExit(2)
