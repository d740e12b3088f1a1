"""A select with hundreds of options, as the launch form has several: written by itself, since Django renders a template
for each option.

Not here: what the options are (`choices`, `image_choices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_SELECTED = SafeString(" selected")


class LongSelect(forms.Select):
    """The same element as that of `forms.Select`. Its options are given by `select`."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        chosen = self.format_value(value)[0]
        inside = format_html_join("", "{}", ((_written(key, words, chosen),) for key, words in self.choices))
        more = flatatt(self.build_attrs(self.attrs, attrs))
        return format_html('<select name="{}"{}>{}</select>', name, more, inside)


def select(field: forms.Field, options: Sequence[Any], empty: str) -> None:
    """Give a select its options; `empty` are the words of none."""
    assert isinstance(field.widget, LongSelect)
    field.widget.choices = [*([("", empty)] if empty else []), *options]


def _written(key: str, words: Any, chosen: str) -> SafeString:
    """An option, or a group of them."""
    if isinstance(words, str):
        return format_html('<option value="{}"{}>{}</option>', key, _SELECTED if key == chosen else "", words)
    options = format_html_join(
        "", '<option value="{}"{}>{}</option>', ((one, _SELECTED if one == chosen else "", said) for one, said in words)
    )
    return format_html('<optgroup label="{}">{}</optgroup>', key, options)
