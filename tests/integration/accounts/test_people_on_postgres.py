"""What only a real database shows of people: several take the last place of an invitation, and lists in any order."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.api.paging import page_of
from apps.errors import Gone, Invalid
from apps.namespaces.invitations import Wish, invitation_accept, invitation_create
from apps.namespaces.models import Invitation, InvitationUse, Role
from apps.namespaces.services import members_add, team_create
from apps.people.user_rows import TEAM_ORDERS, USER_ORDERS, team_rows, user_rows
from tests.integration.accounts.test_accounts_on_postgres import at_once, root
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db", "root"]

pytestmark = pytest.mark.postgres


def test_of_several_for_the_last_places_exactly_so_many_win(root):
    _, token = invitation_create(wish=Wish(uses=2), actor=root)

    def accept(number: int) -> User:
        return invitation_accept(token=token, username=f"user-{number}", password="correct horse 9")

    found = at_once(accept)
    assert sum(isinstance(one, User) for one in found) == 2
    assert sum(isinstance(one, Gone) for one in found) == 4
    assert (Invitation.objects.get().used, InvitationUse.objects.count()) == (2, 2)
    assert User.objects.filter(username__startswith="user-").count() == 2


@pytest.mark.parametrize("order", [f"{sign}{one}" for one in USER_ORDERS for sign in ("", "-")])
def test_every_order_of_users_pages_through_all(root, order):
    for number in range(4):
        User.objects.create_user(f"user-{number}")
    first = page_of(user_rows("", "all", order), None, 3)
    second = page_of(user_rows("", "all", order), first.older_cursor, 3)
    assert len({one.pk for one in [*first.rows, *second.rows]}) == 5
    back = page_of(user_rows("", "all", order), second.newer_cursor, 3)
    assert [one.pk for one in back.rows] == [one.pk for one in first.rows]


@pytest.mark.parametrize("order", list(TEAM_ORDERS))
def test_every_order_of_teams_pages_through_all(root, order):
    for number in range(4):
        team_create(slug=f"team-{number}", title="", manager=root, actor=root)
    first = page_of(team_rows("team", order), None, 3)
    second = page_of(team_rows("team", order), first.older_cursor, 3)
    assert len({one.pk for one in [*first.rows, *second.rows]}) == 4


def test_searching_for_what_no_database_holds_finds_no_row(root):
    assert page_of(user_rows("a\0b", "all", ""), None, 3).rows == []
    assert page_of(team_rows("a\0b", ""), None, 3).rows == []
    with pytest.raises(Invalid, match="no user"):
        members_add(
            namespace=team_create(slug="vision", title="", manager=root, actor=root),
            usernames=["a\0b", "x" * 10_000], role=Role.MEMBER, actor=root,
        )  # fmt: skip
