"""The flags by which a process finds the others of its run. Only the standard library."""

from common.terminal.command import Parser
from common.terminal.values import DEVICES, JOIN, count, rank


def add_hosts(made: Parser) -> None:
    """Adds the flags by which a process finds the others of its run."""
    add = made.add_argument_group("several hosts").add_argument
    add(
        "--launcher",
        choices=("auto", "none"),
        default="auto",
        help="auto: join the other processes of the launcher that has started this one; "
        "none: it has nothing to do with others (%(default)s)",
    )
    add(
        "--coordinator",
        metavar="HOST:PORT",
        help="by hand, the same on each host: where the first process takes all others in",
    )
    add("--hosts", type=count(DEVICES), metavar="N", help="by hand: how many hosts there are")
    add("--host-rank", type=rank, metavar="R", help="by hand: which one this is, from 0")
    add(
        "--join-timeout",
        type=count(JOIN),
        default=300,
        metavar="S",
        help="seconds in which all processes have to come (%(default)s)",
    )
