"""The hub lets a run's processes in, hands on what they give, and tells all how it ended."""

import threading
import time
from collections.abc import Callable

import pytest
from hub_members import SOON, Hall, hall as hall
from together import wait_until

from common.base.endings import KILLED, REST, SAID, STOPPED, Ending
from common.base.errors import RequestError, RunError, StoppedError
from common.hosts.wire import GONE, SILENT

Made = Callable[..., Hall]


def ending(order: int, message: str) -> Ending:
    return Ending(order, RunError(message, step=3), "a traceback")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_all_are_let_in_in_any_order_and_told_of_each_other(
    hall: Made, order: tuple[int, ...]
) -> None:
    here, members = hall(), {}
    for number, rank in enumerate(order, 1):
        members[rank] = here.come(rank)
        missing = sorted(order[number:])
        assert all(each.hear("missing") == missing for each in members.values())
    told = [members[rank].hear("everyone") for rank in range(3)]
    assert [[each["host"] for each in one] for one in told] == [["n0", "n1", "n2"]] * 3
    assert {each["address"] for each in told[0]} <= {"127.0.0.1", "::1"}
    assert told == [told[0]] * 3


def test_what_is_given_comes_back_by_rank_also_of_several_at_once(hall: Made) -> None:
    members = hall().all()
    for value in ("a", "b", "c"):
        members[2].say(give=[2, value])
    for value in ("a", "b"):
        members[0].say(give=[0, value])
    for value in ("a", "b", "c"):
        members[1].say(give=[1, value])
    for each in members:
        for value in ("a", "b"):
            assert each.hear("got") == [[0, value], [1, value], [2, value]]
    members[0].say(give=None)
    assert [each.hear("got") for each in members] == [[None, [1, "c"], [2, "c"]]] * 3


def test_all_are_told_to_stop_if_one_is_asked_to(hall: Made) -> None:
    members = hall().all()
    members[1].say(stop=True)
    assert [each.hear("stop") for each in members] == [True] * 3


def test_it_ends_well_once_all_are_done(hall: Made) -> None:
    here = hall()
    members = here.all()
    for each in members[1:]:
        each.say(done=True)
    members[2].close()  # whoever is done may go
    time.sleep(0.3)
    members[0].say(done=True)
    assert [each.hear("over") for each in members[:2]] == [None, None]
    assert here.ends()


@pytest.mark.parametrize("rank", range(3))
def test_a_failure_is_told_to_all_with_rank_and_host(hall: Made, rank: int) -> None:
    members = hall().all()
    members[rank].fail(Ending(SAID, RequestError("ask otherwise"), "a traceback"))
    told = [each.hear("over") for each in members]
    assert told == [told[0]] * 3
    expected = {"kind": "RequestError", "message": "ask otherwise", "status": 2, "order": SAID}
    expected |= {"rank": rank, "host": f"n{rank}", "details": "a traceback"}
    assert told[0] == expected


@pytest.mark.parametrize("first", [REST, KILLED, SAID])
def test_what_a_worker_said_is_the_cause_however_late_it_comes(hall: Made, first: int) -> None:
    members = (here := hall(grace=2 * SOON)).all()  # it ends as soon as all have failed
    endings = {REST: "comes of it", KILLED: "was ended by SIGKILL", SAID: "the cause"}
    order = [first, *(each for each in (REST, KILLED, SAID) if each != first)]
    for rank, each in enumerate(order):
        members[rank].fail(ending(each, endings[each]))
        wait_until(lambda: len(here.hub.failures) > rank)  # noqa: B023
    for member in members:
        over = member.hear("over")
        assert (over["message"], over["rank"]) == ("the cause", order.index(SAID))


def test_the_first_of_two_that_say_so_is_the_cause(hall: Made) -> None:
    members = (here := hall()).all()
    members[1].fail(ending(SAID, "first"))
    wait_until(lambda: here.hub.failures != [])
    members[0].fail(ending(SAID, "second"))
    assert [each.hear("over")["message"] for each in members] == ["first"] * 3


def test_whoever_stops_waits_for_the_others_to_stop(hall: Made) -> None:
    members = hall().all()
    stopped = Ending(STOPPED, StoppedError("stopped after step 3", status=130, step=3), "")
    members[1].fail(stopped)
    time.sleep(0.5)  # one that fails gives them 0.3
    began = time.monotonic()
    members[2].fail(stopped)
    threading.Timer(0.3, lambda: members[0].fail(stopped)).start()
    over = members[0].hear("over")
    assert time.monotonic() - began >= 0.3
    assert (over["rank"], over["status"]) == (1, 130)


def test_the_first_one_that_stops_alone_ends_the_others_soon(hall: Made) -> None:
    members = hall().all()
    members[0].fail(Ending(STOPPED, StoppedError("stopped while another run was at work"), ""))
    assert members[2].hear("over")["message"] == "stopped while another run was at work"


def test_whoever_is_lost_meanwhile_is_not_waited_for(hall: Made) -> None:
    members = hall().all()
    members[1].fail(Ending(STOPPED, StoppedError("stopped after step 3"), ""))
    members[0].fail(Ending(STOPPED, StoppedError("stopped after step 3"), ""))
    members[2].freeze()
    assert members[0].hear("over")["message"] == "stopped after step 3"


def test_what_may_come_of_a_silent_process_waits_until_that_is_known(hall: Made) -> None:
    members = hall().all()
    members[2].freeze()
    time.sleep(0.25)
    members[0].fail(ending(REST, "Connection closed by peer"))
    over = members[1].hear("over")
    assert (over["message"], over["rank"], over["host"]) == (SILENT, 2, "n2")


def test_what_comes_of_nothing_else_is_told_while_all_live(hall: Made) -> None:
    members = hall().all()
    members[0].fail(ending(REST, "a process failed: MemoryError"))
    assert members[1].hear("over")["message"] == "a process failed: MemoryError"


@pytest.mark.parametrize("together", [True, False])
def test_one_that_is_silent_is_named(hall: Made, together: bool) -> None:
    here = hall()
    members = here.all() if together else [here.come(rank) for rank in (0, 1)]
    began = time.monotonic()
    members[1].freeze()
    for each in (members[0], *members[2:]):
        over = each.hear("over")
        assert (over["message"], over["rank"], over["host"]) == (SILENT, 1, "n1")
    assert time.monotonic() - began >= 15 * 0.05


@pytest.mark.parametrize("together", [True, False])
def test_one_that_is_gone_is_named(hall: Made, together: bool) -> None:
    here = hall()
    members = here.all() if together else [here.come(rank) for rank in (0, 1)]
    if not together:
        members[1].hear("missing")
    members[1].close()
    for each in (members[0], *members[2:]):
        over = each.hear("over")
        assert (over["message"], over["rank"], over["order"]) == (GONE, 1, KILLED)


def test_one_that_has_said_why_is_not_called_gone(hall: Made) -> None:
    members = hall().all()
    members[1].fail(ending(REST, "out of memory"))
    members[1].close()
    assert members[0].hear("over")["message"] == "out of memory"


def test_a_frozen_one_hears_of_it_when_it_goes_on_and_holds_nobody_up(hall: Made) -> None:
    here = hall()
    members = here.all()
    members[1].freeze()
    for each in (members[0], members[2]):
        assert each.hear("over")["rank"] == 1
        each.close()
    here.thread.join(1)  # it does not wait for one that will not hear
    assert not here.thread.is_alive()
    assert members[1].hear("over")["rank"] == 1


def test_those_that_do_not_come_in_time_are_named(hall: Made) -> None:
    here = hall(4, 0.5)
    members = [here.come(rank) for rank in (0, 2)]
    assert [each.hear("late") for each in members] == [["1", "3"]] * 2
    assert here.ends()


def test_all_that_have_come_in_time_have_as_long_as_they_like(hall: Made) -> None:
    members = (here := hall()).all()
    here.hub.limit = time.monotonic()
    time.sleep(0.3)
    for rank, each in enumerate(members):
        each.say(give=rank)
    assert [each.hear("got") for each in members] == [[0, 1, 2]] * 3
