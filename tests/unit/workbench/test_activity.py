"""When a Jupyter was last used, from answers that may be anything: its owner's programs can write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.workbench.activity import used_until

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


def kernel(at: Any, state: Any = "idle") -> dict[str, Any]:
    return {"id": "k", "last_activity": at, "execution_state": state, "connections": 1}


def test_the_newest_kernel_or_terminal_counts():
    kernels = [kernel("2027-01-04T10:00:00.000000Z"), kernel("2027-01-04T11:00:00Z")]
    terminals = [{"name": "1", "last_activity": "2027-01-04T11:30:00Z"}]
    assert used_until(kernels, [], NOW) == NOW - timedelta(hours=1)
    assert used_until(kernels, terminals, NOW) == NOW - timedelta(minutes=30)
    assert used_until([], [], NOW) is None


def test_a_kernel_that_computes_is_used_now():
    assert used_until([kernel("2027-01-04T01:00:00Z", "busy")], [], NOW) == NOW


def test_a_terminal_in_which_a_command_runs_in_silence_is_used_now():
    terminal = {"name": "1", "last_activity": "2027-01-04T01:00:00Z", "execution_state": "busy"}
    assert used_until([], [terminal], NOW) == NOW
    assert used_until([], [terminal | {"execution_state": "idle"}], NOW) == NOW - timedelta(hours=11)


@pytest.mark.parametrize("state", ["starting", "restarting", "dead", "idle"])
def test_a_kernel_that_no_page_has_asked_anything_is_not_used_for_ever(state):
    assert used_until([kernel("2027-01-04T01:00:00Z", state)], [], NOW) == NOW - timedelta(hours=11)


def test_an_open_page_is_no_use():
    assert used_until([kernel("2027-01-04T01:00:00Z")], [], NOW) == NOW - timedelta(hours=11)


def test_a_time_to_come_is_now_and_one_without_a_zone_is_utc():
    assert used_until([kernel("2999-01-01T00:00:00Z")], [], NOW) == NOW
    assert used_until([kernel("2027-01-04T11:00:00")], [], NOW) == NOW - timedelta(hours=1)


HOSTILE = [
    None, True, 7, "x", {}, {"a": 1}, [None], [[]], [{}], ["x" * 1000], [{"last_activity": None}],
    [{"last_activity": {}}], [{"last_activity": "9" * 10_000}], [{"execution_state": []}],
    [{"last_activity": "0001-01-01T00:00:00+14:00"}], [{"last_activity": "9999-12-31T23:59:59-14:00"}],
    [{"last_activity": "2027-01-04T11:00:00+23:59"}], [{}] * 5000,
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda one: str(one)[:40])
def test_hostile_answers_are_no_fault(answer):
    for kernels, terminals in ((answer, []), ([], answer), (answer, answer)):
        found = used_until(kernels, terminals, NOW)
        assert found is None or found <= NOW


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=30) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["last_activity", "execution_state", "id"]), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(kernels=JSON, terminals=JSON)
def test_nothing_that_json_can_say_breaks_it(kernels, terminals):
    found = used_until(json.loads(json.dumps(kernels)), terminals, NOW)
    assert found is None or found <= NOW
