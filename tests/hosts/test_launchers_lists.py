"""Slurm's lists of hosts and of tasks, read back from what they stand for."""

import pytest
from hypothesis import given, strategies as st

from common.base.errors import RequestError
from common.hosts.slurm import expanded, tasks_per_node

NAMES = st.from_regex(r"[a-z][a-z-]{0,4}", fullmatch=True)


@st.composite
def bracketed(draw: st.DrawFn) -> tuple[str, list[str]]:
    """An item of a list of hosts, and the hosts that it stands for."""
    prefix, suffix = draw(NAMES), draw(st.sampled_from(["", "-ib", ".local"]))
    parts, numbers = [], []
    for _ in range(draw(st.integers(1, 3))):
        first, more, width = (draw(st.integers(0, most)) for most in (120, 12, 4))
        last = first + more
        numbers += [f"{number:0{width}}" for number in range(first, last + 1)]
        parts.append(f"{first:0{width}}" + (f"-{last:0{width}}" if more else ""))
    return f"{prefix}[{','.join(parts)}]{suffix}", [f"{prefix}{n}{suffix}" for n in numbers]


@given(st.lists(bracketed() | NAMES.map(lambda name: (name, [name])), min_size=1, max_size=5))
def test_a_list_of_hosts_is_expanded(items: list[tuple[str, list[str]]]) -> None:
    text = ",".join(item for item, _ in items)
    assert expanded(text, "it") == [name for _, names in items for name in names]


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", "n1"),
        ("n[1-3,7],m02", "n1 n2 n3 n7 m02"),
        ("n[08-10]", "n08 n09 n10"),
        ("n[8-10]", "n8 n9 n10"),
        ("r[1-2]n[0-1]", "r1n0 r1n1 r2n0 r2n1"),
        ("[1-2]", "1 2"),
    ],
)
def test_lists_as_slurm_writes_them(text: str, hosts: str) -> None:
    assert expanded(text, "it") == hosts.split()


@given(st.text("n1[]-,0 \n", max_size=12))
def test_whatever_else_there_is_becomes_hosts_or_a_line(text: str) -> None:
    try:
        hosts = expanded(text, "it")
    except RequestError:
        return
    assert hosts
    assert all(hosts)


@pytest.mark.parametrize("text", ["", ",", "n1,", "n[", "n]", "n[]", "n[1-]", "n[3-1]", "n 1"])
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r"it '.*' is no list of hosts"):
        expanded(text, "it")


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 20)), min_size=1, max_size=5))
def test_tasks_are_counted_node_by_node(groups: list[tuple[int, int]]) -> None:
    text = ",".join(f"{tasks}(x{nodes})" if nodes > 1 else str(tasks) for tasks, nodes in groups)
    assert tasks_per_node(text, "it") == [tasks for tasks, nodes in groups for _ in range(nodes)]
