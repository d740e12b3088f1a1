"""What only a real database shows of invitations: two take the last place at once."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.errors import Gone
from apps.namespaces.invitations import Wish, invitation_accept, invitation_create
from apps.namespaces.models import Invitation, InvitationUse
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
