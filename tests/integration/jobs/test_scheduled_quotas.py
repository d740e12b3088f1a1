"""What a scheduled change of a quota does to jobs: those that wait start soon after it begins, none is stopped at its
end."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from apps.administration.quota_schedules import quota_schedules_sweep, schedules_create
from apps.administration.usage import usage_of
from apps.jobs.models import QueuePass
from apps.namespaces.models import Namespace, Quota
from apps.namespaces.selectors import quota_of

HOUR = timedelta(hours=1)


def test_a_job_that_waits_for_quota_starts_when_it_begins_and_runs_on_after_its_end(
    world, ada, admin, sent, django_capture_on_commit_callbacks
):
    namespace = ada.personal_namespace
    quota_of(namespace)
    Quota.objects.filter(pk=namespace.pk).update(running_jobs=1)
    first = world.launch(ada)
    world.until_running(first)
    job = world.launch(ada)
    world.settle()
    assert world.again(job).reason == "WaitingForQuota"
    now = timezone.now()
    schedules_create(
        namespace_ids=[namespace.pk], changes={"running_jobs": 2}, starts=now + HOUR, ends=now + 2 * HOUR, reason="x",
        actor=admin,
    )  # fmt: skip
    world.passes(60)
    assert world.again(job).phase == "QUEUED"
    QueuePass.objects.update(asked=False)
    sent.clear()
    with django_capture_on_commit_callbacks(execute=True):
        quota_schedules_sweep(now + 1.5 * HOUR)
    assert ("yardmaster.admit", "staged") in sent, "a pass is sent for at once"
    world.until_running(job)
    quota_schedules_sweep(now + 3 * HOUR)
    world.passes(60)
    assert world.again(job).phase == "RUNNING"
    usage = usage_of(Namespace.objects.get(pk=namespace.pk))
    assert (usage.hard["running_jobs"], usage.used["running_jobs"]) == (1, 2)
