"""Invitations to many addresses at once, each with a link of its own: all of them, or none where any address will not
do. Not here: what an invitation is, and who may make one (`invitations`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from apps.accounts.models import User
from apps.errors import Invalid
from apps.namespaces.invitations import Wish, address_problem, invitation_create, may_invite, take_allowance
from apps.namespaces.models import Invitation
from yardmaster.errors import Problem

MOST_AT_ONCE = 50


def invitations_create(*, wish: Wish, emails: Sequence[str], actor: User) -> list[tuple[Invitation, str]]:
    """One for each address, in their order, with its token. Raises as `invitation_create` does; `Invalid` has a problem
    `emails.N` (from 0) for each address that will not do, and then none is made."""
    may_invite(actor, wish.namespace)
    if problems := _problems(emails):
        raise Invalid(problems)
    take_allowance(actor, len(emails))
    with transaction.atomic():
        return [
            invitation_create(wish=replace(wish, email=one, uses=1), actor=actor, is_counted=True) for one in emails
        ]


def _problems(emails: Sequence[str]) -> list[Problem]:
    if not 1 <= len(emails) <= MOST_AT_ONCE:
        message = f"{len(emails)} addresses are given. At one time, 1 to {MOST_AT_ONCE} people can be invited."
        return [Problem("emails", "out_of_range", message, "Invite the others afterwards.", str(len(emails)))]
    found: list[Problem] = []
    first: dict[str, int] = {}
    for at, one in enumerate(emails):
        field = f"emails.{at}"
        if (wrong := address_problem(field, one)) is not None:
            found.append(wrong)
        elif one.casefold() in first:
            message = f"{one} is given twice."
            found.append(Problem(field, "repeated", message, "Remove one of them.", one))
        first.setdefault(one.casefold(), at)
    return found
