"""What pages ask of second factors."""

from __future__ import annotations

from typing import Any

from django import template

from apps.accounts import confirming
from apps.accounts.models import User
from apps.accounts.second_factor import lacks_second_factor

register = template.Library()


@register.simple_tag(takes_context=True)
def lacks_factor(context: dict[str, Any]) -> bool:
    """Whether the reader must set up a second factor before anything else."""
    user = context["request"].user
    return isinstance(user, User) and lacks_second_factor(user)


@register.simple_tag(takes_context=True)
def waiting_address(context: dict[str, Any]) -> str:
    """The address that a confirmation gives the account; see `confirming`."""
    return confirming.waiting_address(context["request"])
