"""Namespaces that an administrator names: who may use what is registered for all, or for some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django import forms

from apps.accounts.models import User
from apps.errors import Invalid, NotFound
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten

MOST_NAMESPACES = 500
"""That one thing may be shared with by name."""


def refs_in(text: str) -> list[str]:
    """Names between commas and spaces."""
    return [one for one in re.split(r"[\s,]+", text) if one]


def namespaces_named(user: User, refs: Iterable[str]) -> list[Namespace]:
    """By slug or id, in that order. Raises `Invalid` of the field `namespaces` for one that `user` does not see."""
    found = []
    for ref in refs:
        try:
            found.append(namespace_for(user, ref))
        except NotFound as error:
            message = f"There is no namespace {shorten(ref)}."
            raise Invalid([Problem("namespaces", "unknown", message, "Write the slug of one.", ref)]) from error
    return found


def namespaces_bounded(namespaces: Iterable[Namespace], what: str) -> list[Namespace]:
    """Raises `Invalid` where there are more than may be named. `what`: such as "An image"."""
    found = list(namespaces)
    if len(found) > MOST_NAMESPACES:
        message = f"{what} is for every namespace, or for at most {MOST_NAMESPACES} of them."
        raise Invalid([Problem("namespaces", "too_long", message, "Set everyone to true.", str(len(found)))])
    return found


def namespaces_taken(user: User, data: dict[str, Any]) -> list[Namespace] | None:
    """Those of a request, taken out of `data`; None: it names none. Where there are some, they alone may use it unless
    the request says otherwise (`everyone`). Raises `NotFound`."""
    given = data.pop("namespaces", None)
    if given:
        data.setdefault("everyone", False)
    return None if given is None else [namespace_for(user, one) for one in given]


class ForNamespaces(forms.Form):
    """Under a form that has the fields `everyone` and `namespaces`."""

    def clean(self) -> dict[str, Any]:
        said = super().clean() or self.cleaned_data
        if said.get("everyone") and refs_in(said.get("namespaces", "")):
            self.add_error("namespaces", "Remove these, or untick “Every namespace may use it”.")
        return said

    def namespaces_said(self, user: User) -> list[Namespace]:
        """Of a valid form. Raises `Invalid` for one that does not exist."""
        return namespaces_named(user, refs_in(self.cleaned_data["namespaces"]))
