"""The admin area: for administrators alone, reached from every page, and its first page says what is held."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.jobs.models import Hold

pytestmark = pytest.mark.django_db


def test_others_are_refused_and_see_no_way_there(web):
    assert web.get("/admin/").status_code == 403
    assert "/admin/" not in web.get("/account/").content.decode()


def test_who_is_not_signed_in_is_asked_to(client):
    answer = client.get("/admin/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


def test_administrators_get_there_and_see_counts_and_holds(admin, ada, client):
    client.force_login(admin)
    assert "/admin/" in client.get("/account/").content.decode()
    assert "Nothing is held" in client.get("/admin/").content.decode()
    Hold.objects.create(engine="local", reason="A new disk", by=admin, at=timezone.now())
    Hold.objects.create(namespace=ada.personal_namespace, cause="budget", at=timezone.now())
    text = client.get("/admin/").content.decode()
    for words in ("Engine local", "A new disk", f"Namespace {ada.personal_namespace.slug}", "budget spent"):
        assert words in text
