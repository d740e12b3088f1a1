"""The page of a namespace's environments: what is kept, who uses it, and removing it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.environments.models import Environment, State
from apps.jobs.models import JobPackages
from apps.namespaces.models import Membership, Role
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.shown import page

__all__ = ["engine_settings", "stores", "world"]
pytestmark = pytest.mark.django_db
HOSTILE = "<script>alert(1)</script>"
LOCK = [{"name": "pandas", "version": "2.2", "sha256": "b" * 64}, {"name": "six", "version": "1.17", "sha256": ""}]


def made(ada, key: str = "a", **changes) -> Environment:
    now = timezone.now()
    facts = {
        "namespace": ada.personal_namespace, "key": key * 64, "requirements": ["pandas>=2", HOSTILE],
        "python": "3.11", "state": State.READY, "lock": LOCK, "size": 5 << 20, "created_at": now, "used_at": now,
    }  # fmt: skip
    return Environment.objects.create(**facts | changes)


@pytest.fixture
def signed(client, ada):
    client.force_login(ada)
    return client


def shown(web, ada) -> str:
    return page(web, "environments_page", ada.personal_namespace.pk)


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_without_any_it_says_where_they_come_from(signed, ada):
    made(ada, state=State.BUILDING)
    assert "No environments yet" in shown(signed, ada)


def test_it_lists_packages_size_use_and_jobs(signed, world, ada, bob, django_assert_max_num_queries):
    made(ada, used_at=timezone.now() - timedelta(days=3))
    made(ada, "c", lock=[LOCK[0]], requirements=["pandas"])
    jobs = [world.launch(ada, name=f"digits {n}") for n in range(5)]
    for job in jobs:
        JobPackages.objects.create(job=job, attempt=1, lock=LOCK)
    JobPackages.objects.create(job=jobs[4], attempt=2, lock=LOCK)
    JobPackages.objects.create(job=world.launch(bob, name="of bob"), attempt=1, lock=LOCK)
    shown(signed, ada)
    with django_assert_max_num_queries(9):
        text = shown(signed, ada)
    said = words(text)
    assert "Python 3.11 · 5.0 MiB" in said
    assert "Used by digits 4 , digits 3 , digits 2 and 2 more" in said
    assert "No existing job uses it." in said
    assert "2 packages installed pandas 2.2 six 1.17" in said
    assert f"/jobs/{jobs[4].pk}/" in text
    assert HOSTILE not in text
    assert "of bob" not in text
    assert 'href="/namespaces/' in page(signed, "namespace_page", ada.personal_namespace.pk)


def test_removing_one_is_asked_about_and_returns_to_the_list(signed, ada):
    one = made(ada)
    assert "Jobs that run keep their packages." in shown(signed, ada)
    answer = signed.post(f"/environments/{one.pk}/remove/", follow=True)
    assert "The environment was removed" in answer.content.decode()
    assert not Environment.objects.exists()
    assert AuditEvent.objects.filter(action="environment.delete").exists()


def test_others_see_none_of_it_and_viewers_remove_none(client, ada, bob):
    one = made(ada)
    client.force_login(bob)
    assert client.get(f"/namespaces/{ada.personal_namespace.pk}/environments/").status_code == 404
    assert client.post(f"/environments/{one.pk}/remove/").status_code == 404
    Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Role.VIEWER)
    text = page(client, "environments_page", ada.personal_namespace.pk)
    assert "pandas" in text
    assert "Remove environment" not in text
    assert client.post(f"/environments/{one.pk}/remove/").status_code == 403
    assert Environment.objects.exists()
