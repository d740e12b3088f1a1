"""What an administrator tells everyone is printed by each command, once, beside its results."""

from __future__ import annotations

import pytest

NOTICE = "/api/v1/admin/notice/"


@pytest.fixture
def notice(ada):
    ada.transport.put(NOTICE, {"text": "Maintenance at noon\x1b[31m\u202e", "kind": "warning"})
    yield
    ada.transport.delete(NOTICE)


def test_it_is_printed_once_per_command_on_the_side(yardmaster, notice):
    for _ in range(2):
        ran = yardmaster("jobs", "list", "--json")
        assert ran.code == 0
        assert ran.err.count("warning: Maintenance at noon") == 1
        assert "\x1b[31m" not in ran.err
        assert "Maintenance" not in ran.out


def test_without_one_nothing_is_said(yardmaster):
    assert "notice" not in yardmaster("jobs", "list").err
