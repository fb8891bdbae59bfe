"""Where Jupyter is not installed, a command ends in one line that says what installs it."""

import pytest

from notebooks.text.installed import require


def test_a_command_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    require("numpy")
    with pytest.raises(SystemExit) as ended:
        require("numpy", "no_such_package")
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no_such_package cannot be imported here: ")
    assert "`nox -s notebooks` and `nox -s site` install" in line
