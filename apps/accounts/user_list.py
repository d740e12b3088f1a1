"""The list of all users: searched, filtered by state, with the time of the last use.

Not here: what users hold (`apps.people.user_rows`), and who may see the list (the views).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import DateTimeField, F, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest, Lower

from apps.accounts.models import Browser, PersonalToken, User
from apps.accounts.selectors import users
from apps.api.sorted_list import SortedList, order_of

LONGEST_SEARCH = 100
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The last use of an account that was never used."""
STATES = {
    "all": Q(),
    "active": Q(is_active=True),
    "locked": Q(is_active=False),
    "administrators": Q(is_staff=True),
}
ORDERS = {"username": "lower_name", "joined": "date_joined", "last_use": "last_use"}


def users_found(search: str = "", state: str = "all") -> QuerySet[User]:
    """Users whose name or address holds the text, in this state, each with `last_use` (`NEVER`: none) and
    `lower_name`."""
    text = search.strip()[:LONGEST_SEARCH]
    rows = users().annotate(last_use=_last_use(), lower_name=Lower("username")).filter(STATES[state])
    if "\0" in text:  # in no name, and databases refuse it
        return rows.none()
    if text:
        named = Q(first_name__icontains=text) | Q(last_name__icontains=text)
        rows = rows.filter(Q(username__icontains=text) | Q(email__icontains=text) | named)
    return rows


def user_list(search: str, state: str, order: str) -> SortedList:
    """The same in an order of `ORDERS`; newest first where none is named. Raises `Invalid` for another."""
    by, falls = order_of(order, ORDERS, "-joined")
    return SortedList(users_found(search, state), by, falls)


def _last_use() -> Greatest:
    """The newest of: a browser was seen, a token was used, the user signed in. Browsers and tokens are noted to the
    minute."""
    return Greatest(
        _or_never(_newest(Browser, "seen_at")),
        _or_never(_newest(PersonalToken, "last_used_at")),
        _or_never(F("last_login")),
    )


def _newest(model: type[Browser] | type[PersonalToken], column: str) -> Subquery:
    of_user = model.objects.filter(user=OuterRef("pk")).order_by().values("user")
    return Subquery(of_user.annotate(newest=Max(column)).values("newest"))


def _or_never(value: Any) -> Coalesce:
    return Coalesce(value, Value(NEVER), output_field=DateTimeField())
