"""Imports of many repositories of one namespace keep those of others waiting for one turn."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.code import worker
from apps.code.import_turns import import_in_turn
from apps.code.models import CodeImport, ImportState
from apps.dispatch.messages import FETCH_CODE
from celery_worker import tasks

pytestmark = [pytest.mark.django_db]


def asked_for(user, ago: float, **more) -> CodeImport:
    now = timezone.now()
    facts = {"next_look_at": now - timedelta(seconds=ago)} | more
    return CodeImport.objects.create(
        namespace=user.personal_namespace, created_by=user, name="digits", repository="https://git.example/lab/digits",
        created_at=now, **facts,
    )  # fmt: skip


def take_up(one: CodeImport) -> None:
    CodeImport.objects.filter(pk=one.pk).update(
        lease=uuid.uuid4(), leased_until=timezone.now() + timedelta(minutes=1)
    )  # fmt: skip


def test_the_namespace_with_the_fewest_under_way_is_next_however_many_another_has(ada, bob):
    many = [asked_for(ada, 100 - number) for number in range(4)]
    few = [asked_for(bob, 10 - number) for number in range(2)]
    order = []
    while (found := import_in_turn(timezone.now())) is not None:
        order.append(found)
        take_up(CodeImport.objects.get(pk=found))
    assert order == [one.pk for one in (many[0], few[0], many[1], few[1], many[2], many[3])]


def test_what_has_ended_waits_or_lost_its_worker_is_not_under_way(ada, bob):
    now = timezone.now()
    lost = asked_for(ada, 20, state=ImportState.STORING, lease=uuid.uuid4(), leased_until=now - timedelta(seconds=1))
    asked_for(ada, -60)
    asked_for(ada, 0, state=ImportState.READY, next_look_at=None, leased_until=now + timedelta(minutes=1))
    later = asked_for(bob, 10)
    assert import_in_turn(now) == lost.pk
    take_up(lost)
    assert import_in_turn(now) == later.pk
    take_up(later)
    assert import_in_turn(now) is None


def test_a_message_is_for_the_import_whose_turn_it_is_and_the_next_one_is_woken(ada, bob, monkeypatch):
    begun: list[uuid.UUID] = []
    woken: list[tuple[str, uuid.UUID]] = []

    def fetched(import_id: uuid.UUID) -> None:
        begun.append(import_id)
        CodeImport.objects.filter(pk=import_id).update(next_look_at=None)

    monkeypatch.setattr(tasks, "code_import", fetched)
    monkeypatch.setattr(worker, "enqueue_now", lambda message, subject: woken.append((message, subject)))
    first, second = asked_for(ada, 20), asked_for(ada, 19)
    other = asked_for(bob, 10)
    take_up(first)
    tasks.fetch_code(str(second.pk))
    assert (begun, woken) == ([other.pk], [(FETCH_CODE, second.pk)])
    tasks.fetch_code(str(second.pk))
    assert (begun, len(woken)) == ([other.pk, second.pk], 1)
