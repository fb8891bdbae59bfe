"""The control plane: processes of a run send each other JSON, heartbeats and how they ended.

A process listens to its children by pipes, and to other hosts by TCP, with the authentication of
`multiprocessing.connection`. Nothing that comes is unpickled.
"""

import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

from common.base.endings import ending_of, to_plain

LONGEST: Final = 1 << 20
"""Bytes of a message: more than any of ours has, and no burden if they come from a stranger."""

Message = dict[str, Any]


class Channel:
    """One end of a connection that carries messages; any thread may send."""

    def __init__(self, connection: Connection) -> None:
        """Takes over a connection."""
        self.connection, self.lock = connection, threading.Lock()

    def send(self, **message: Any) -> None:
        """Sends a message; nothing happens if the other end is gone, as `receive` tells."""
        with self.lock, suppress(OSError):
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> Message | None:
        """Waits for the next message; None if the other end is gone, or sends something else."""
        try:
            found = json.loads(self.connection.recv_bytes(LONGEST))
        except (OSError, EOFError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


class Member:
    """A process at work that another one listens to."""

    def __init__(self, channel: Channel) -> None:
        """Begins to listen to the other process."""
        self.channel = channel
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, work: Callable[[], object]) -> None:
        """Does the work, then says how it ended."""
        self.channel.send(ended=to_plain(ending_of(work)))

    def gather(self, value: Any) -> list[Any]:
        """What each process has given, by rank."""
        self.channel.send(give=value)
        found: list[Any] = self.inbox.get()
        return found

    def _listen(self) -> None:
        while (message := self.channel.receive()) is not None:
            if "got" in message:
                self.inbox.put(message["got"])
            elif "stop" in message:  # again and again: the run notes it only once it has begun
                os.kill(os.getpid(), signal.SIGUSR1)
