"""The ways a command can fail, and the exit status of each."""


class RequestError(Exception):
    """What was asked for cannot be done; the message says what to do instead. Exit status 2."""


class RunError(Exception):
    """The run failed on its way; the message says why. Exit status 1."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come, which ends a command as Ctrl-C does. Exit status 143."""
