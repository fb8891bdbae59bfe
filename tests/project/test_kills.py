"""What kills a run on its way takes it along when it is ended itself."""

import signal
import sys

import pytest

from sessions.kills import started


@pytest.mark.parametrize("why", [KeyboardInterrupt, ValueError])
def test_whatever_ends_it_ends_the_run(why: type[BaseException]) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with pytest.raises(why), started(command) as run:
        raise why
    assert run.returncode == -signal.SIGTERM
