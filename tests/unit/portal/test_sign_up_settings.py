"""Who may make an account, from two variables of which one is older."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.sign_up_settings import sign_up_mode


@pytest.mark.parametrize(
    ("mode", "is_open", "expected"),
    [("", "", "invitation"), ("", "0", "invitation"), ("", "1", "open"), ("open", "1", "open"), ("open", "0", "open"),
     ("closed", "", "closed"), ("closed", "0", "closed")],
)  # fmt: skip
def test_the_older_variable_still_opens(monkeypatch, mode, is_open, expected):
    monkeypatch.setenv("YARDMASTER_SIGN_UP", mode)
    monkeypatch.setenv("YARDMASTER_OPEN_SIGN_UP", is_open)
    assert sign_up_mode() == expected


@pytest.mark.parametrize(("mode", "is_open"), [("closed", "1"), ("invitation", "1"), ("maybe", ""), ("OPEN", "")])
def test_contradictions_and_other_words_are_named(monkeypatch, mode, is_open):
    monkeypatch.setenv("YARDMASTER_SIGN_UP", mode)
    monkeypatch.setenv("YARDMASTER_OPEN_SIGN_UP", is_open)
    with pytest.raises(ImproperlyConfigured, match="YARDMASTER_SIGN_UP"):
        sign_up_mode()
