"""What a page says, by the name of its address."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse


def page(web: Client, name: str, *args: object, **query: object) -> str:
    """The text of a page, which must be there."""
    answer = web.get(reverse(name, args=args), query)
    assert answer.status_code == 200, (name, answer.status_code)
    return answer.content.decode()
