"""Python as Windows or macOS have it, as ELSEWHERE says: what Linux alone has is hidden from it.

It is loaded first by every Python that finds this folder in PYTHONPATH. Libraries that are not
written in Python still see Linux.
"""

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import types
from typing import Any

LINUX = {
    os: "sched_getaffinity sched_setaffinity memfd_create pidfd_open eventfd pipe2 posix_fallocate "
    "posix_fadvise copy_file_range splice getrandom setresuid setresgid O_TMPFILE",
    resource: "RUSAGE_THREAD prlimit",
    select: "epoll",
    signal: "sigtimedwait sigwaitinfo SIGRTMIN SIGRTMAX SIGPWR SIGSTKFLT SIGPOLL SIGCLD",
    socket: "SOCK_CLOEXEC SOCK_NONBLOCK",
}
UNIX = {
    os: "fork forkpty register_at_fork getppid getpgid killpg setsid wait4 waitid geteuid umask "
    "sched_getaffinity O_NOFOLLOW",
    signal: "SIGUSR1 SIGUSR2 SIGKILL SIGSTOP SIGCONT SIGCHLD SIGHUP pthread_sigmask setitimer",
    socket: "AF_UNIX",
}
ADDRESSES = {0xC0206921: 0x8915}
"""The number of a request to network interfaces on macOS, and on Linux."""


def hide(names: dict[types.ModuleType, str]) -> None:
    for module, hidden in names.items():
        for name in hidden.split():
            vars(module).pop(name, None)


def hide_proc_and_fork() -> None:
    def missing(path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", path)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            missing(arguments[0])
        if event == "os.fork":
            raise OSError("what has loaded a framework may not survive it on macOS")

    def asked(path: Any, **flags: Any) -> os.stat_result:
        missing(path)
        return stat(path, **flags)

    stat, vars(os)["stat"] = os.stat, asked
    sys.addaudithook(hook)


def be_macos() -> None:
    def ioctl(file: int, request: int, *rest: Any) -> Any:
        if request not in ADDRESSES:
            raise OSError(25, "Inappropriate ioctl for device")
        return real(file, ADDRESSES[request], *rest)

    real, vars(fcntl)["ioctl"] = fcntl.ioctl, ioctl
    proxies: Any = types.ModuleType("_scproxy")
    proxies._get_proxies = proxies._get_proxy_settings = dict
    sys.modules["_scproxy"] = proxies
    hide(LINUX)
    hide_proc_and_fork()
    sys.platform = "darwin"


def be_windows() -> None:
    hide(UNIX)
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None  # type: ignore[assignment]


sysconfig.get_config_vars()  # what is asked for once, by the platform's name
{"macos": be_macos, "windows": be_windows}[os.environ["ELSEWHERE"]]()
