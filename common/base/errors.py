"""The ways a command can fail, and the exit status of each."""


class RequestError(Exception):
    """What was asked for cannot be done; the message says what to do instead. Exit status 2."""


class RunError(Exception):
    """The run failed on its way; the message says why. Exit status 1.

    As far as it is known: the `step`, counted from 1, the `tensor` and the number of the `device`.
    """

    def __init__(
        self,
        message: str = "",
        *,
        step: int | None = None,
        tensor: str = "",
        device: int | None = None,
    ) -> None:
        super().__init__(message)
        self.step, self.tensor, self.device = step, tensor, device


class Terminated(KeyboardInterrupt):
    """SIGTERM has come, which ends a command as Ctrl-C does. Exit status 143."""
