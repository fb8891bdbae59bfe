"""The ways a command can fail, and the exit status of each."""


class RequestError(Exception):
    """What was asked for cannot be done; the message says what to do instead. Exit status 2."""

    status = 2


class BusyError(RequestError):
    """Another run is at work where this one was asked to write."""


class RunError(Exception):
    """The run failed (exit status 1), if known in a `step`, from 1, a `tensor`, on a `device`."""

    status = 1

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


class UnforeseenError(RunError):
    """What a framework raised in another process, or how it crashed; the message is its own."""


class StoppedError(RunError):
    """A run was asked to stop, and did, in order. Exit status 130 after Ctrl-C, else 143."""

    def __init__(self, message: str = "", *, status: int = 143, step: int | None = None) -> None:
        super().__init__(message, step=step)
        self.status = status


class Terminated(KeyboardInterrupt):
    """The signal it names has come, and ends a command as Ctrl-C does. Exit status 143."""
