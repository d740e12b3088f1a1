"""A long select is the same element as Django's own."""

from __future__ import annotations

import pytest
from django import forms
from django.test.html import parse_html

from apps.jobs.launch.long_select import LongSelect, select

GROUPS = [
    ("digits", [("a", "digits, version 2 (newest)"), ("b", "digits, version 1")]),
    ('<b> & "c"', [("'", "<i>")]),
]
ATTRS = {"id": "f-code", "class": "form-select", "required": True, "aria-invalid": False, "title": '"&<'}


def written(kind: type[forms.Select], value: object, empty: str) -> str:
    widget = kind(attrs={"autocomplete": "off"}, choices=[*([("", empty)] if empty else []), *GROUPS, ("d", "D & D")])
    return widget.render("roles-ps-image", value, ATTRS)


@pytest.mark.parametrize("empty", ["", "Choose a <version>"])
@pytest.mark.parametrize("value", [None, "", "b", "'", "d", "gone", '"><script>'])
def test_it_is_written_as_django_writes_it(value, empty):
    own, usual = (written(kind, value, empty) for kind in (LongSelect, forms.Select))
    assert parse_html(own) == parse_html(usual)
    assert "<script>" not in own


def test_the_words_of_none_come_first_and_are_left_out_where_there_are_none():
    field = forms.CharField(widget=LongSelect)
    select(field, GROUPS, "No dataset")
    assert field.widget.render("x", "").startswith('<select name="x"><option value="" selected>No dataset</option>')
    select(field, GROUPS, "")
    assert "No dataset" not in field.widget.render("x", "")
