"""Quotas of what waits and of what is printed."""

from __future__ import annotations

import pytest

from apps.administration.usage import quota_rows, usage_of
from apps.errors import Conflict
from apps.namespaces.models import Namespace, Quota
from apps.namespaces.selectors import quota_of
from apps.uploads.models import StorageAccount
from apps.uploads.services import logs_charge
from yardmaster.logs.volume import Cause, reason_of


def limit(namespace, **limits):
    quota_of(namespace)
    Quota.objects.filter(pk=namespace.pk).update(**limits)


def test_one_more_job_than_may_wait_is_refused_with_limit_value_and_remedy(world, ada):
    first = world.launch(ada)
    limit(first.namespace, queued_jobs=1)
    with pytest.raises(Conflict) as refused:
        world.launch(ada)
    problem = refused.value.errors[0]
    assert (refused.value.code, problem.field, problem.value) == ("too_many_queued", "queued_jobs", "1")
    assert "allows 1 queued jobs, and 1 are queued" in refused.value.detail
    world.settle()
    assert world.launch(ada), "the first has started"


def test_a_log_above_the_quota_of_logs_is_cut_and_says_why(ada):
    namespace = ada.personal_namespace
    limit(namespace, logs=3 << 20)
    assert logs_charge(namespace, 2 << 20, 1 << 40) is None
    refusal = logs_charge(namespace, 2 << 20, 1 << 40)
    assert (refusal.cause, refusal.bound) == (Cause.LOG_QUOTA, 3 << 20)
    assert "log quota of 3 MiB is full" in reason_of(refusal)
    assert StorageAccount.objects.get(namespace=namespace).logs == 2 << 20
    assert logs_charge(namespace, 2 << 20, 1 << 20).cause is Cause.NAMESPACE_LIMIT, "the lower of both bounds"


def test_they_are_shown_with_what_is_used_where_they_are_limited(world, ada):
    namespace = world.launch(ada).namespace
    assert not {"Logs", "Sessions", "Queued jobs"} & {row.name for row in quota_rows(usage_of(namespace))}
    limit(namespace, queued_jobs=5, sessions=2, logs=1 << 30)
    namespace = Namespace.objects.get(pk=namespace.pk)  # what is shown of a row is read once
    rows = {row.name: (row.used, row.hard) for row in quota_rows(usage_of(namespace))}
    assert rows["Queued jobs"] == (1, 5)
    assert rows["Sessions"] == (0, 2)
    assert rows["Logs"] == (0, 1 << 30)
