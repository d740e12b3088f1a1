"""Scans of many buckets of one namespace keep those of others waiting for one turn, and what failed is forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.buckets.models import Bucket, State
from apps.datasets import scan_turns
from apps.datasets.registering import FAILED_FOR, bucket_rescan, buckets_forget
from apps.datasets.scan_turns import scan_in_turn
from apps.errors import Conflict
from apps.namespaces.models import Namespace

pytestmark = [pytest.mark.django_db]


def bucket(user, number: int, **more) -> Bucket:
    now = timezone.now()
    fields = {"state": State.SCANNING, "next_look_at": now - timedelta(seconds=100 - number)} | more
    return Bucket.objects.create(
        namespace=Namespace.objects.get(owner=user), endpoint="https://s3.example.org", bucket="data",
        prefix=str(number), region="us-east-1", name=f"d{number}", created_at=now, started_at=now, asked_by=user,
        **fields,
    )  # fmt: skip


def test_namespaces_take_turns_however_many_buckets_one_has(ada, bob):
    many = [bucket(ada, number) for number in range(5)]
    one = bucket(bob, 9)
    now = timezone.now()
    later = [now + timedelta(seconds=seconds) for seconds in range(5)]
    assert [scan_in_turn(at) for at in later[:2]] == [many[0].pk, one.pk]
    Bucket.objects.filter(pk__in=[many[0].pk, one.pk]).update(next_look_at=now + timedelta(minutes=3))
    assert scan_in_turn(later[2]) == many[1].pk
    Bucket.objects.filter(pk=one.pk).update(next_look_at=now)
    assert scan_in_turn(later[3]) == one.pk
    Bucket.objects.update(next_look_at=None)
    assert scan_in_turn(later[4]) is None


def test_two_workers_that_choose_at_once_take_up_scans_of_two_namespaces(ada, bob, monkeypatch):
    many, one = [bucket(ada, number) for number in range(5)], bucket(bob, 9)
    now = timezone.now()
    others: list[object] = []
    take = scan_turns._turn_take

    def take_after_another(*given):
        """Another worker has read the same, and is faster."""
        monkeypatch.setattr(scan_turns, "_turn_take", take)
        others.append(scan_in_turn(now))
        return take(*given)

    monkeypatch.setattr(scan_turns, "_turn_take", take_after_another)
    assert scan_in_turn(now + timedelta(seconds=1)) == one.pk
    assert others == [many[0].pk]


def test_a_turn_goes_with_its_namespace_not_with_its_buckets(ada, bob):
    first, second = bucket(ada, 1), bucket(bob, 2)
    now = timezone.now()
    assert scan_in_turn(now) == first.pk
    first.delete()
    bucket(ada, 0)
    assert scan_in_turn(now + timedelta(seconds=1)) == second.pk


def test_a_rescan_counts_as_a_scan(ada, settings):
    settings.YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE = 2
    idle = [bucket(ada, number, state=State.READY, next_look_at=None) for number in range(3)]
    for one in idle[:2]:
        assert bucket_rescan(bucket=one, user=ada).state == State.SCANNING
    with pytest.raises(Conflict) as refused:
        bucket_rescan(bucket=idle[2], user=ada)
    assert refused.value.code == "too_many_scans"
    assert bucket_rescan(bucket=idle[0], user=ada).state == State.SCANNING, "one that is under way stays so"


def test_a_registration_that_failed_is_forgotten_after_a_day(ada):
    now = timezone.now()
    old, new = (
        bucket(ada, number, state=State.FAILED, next_look_at=None, ended_at=now - FAILED_FOR + timedelta(minutes=ago))
        for number, ago in ((1, -1), (2, 1))
    )
    waiting = bucket(ada, 3)
    assert buckets_forget(now) == 1
    assert not Bucket.objects.filter(pk=old.pk).exists()
    assert set(Bucket.objects.values_list("pk", flat=True)) == {new.pk, waiting.pk}
