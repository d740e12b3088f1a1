"""`job.waiting`: told once for each attempt of a job that has been queued for long. No row says that this happened, so
it is looked for, where a webhook wants it.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count

from apps.dispatch.turns import in_turn
from apps.jobs.models import Job
from apps.webhooks.fanout import MOST_WAITING, body_of_event, delivery_add
from apps.webhooks.models import Delivery, State, Webhook

EVENT = "job.waiting"
NOTED_FOR = timedelta(days=1)
"""A job that was not noted in this time, as the portal was away, is not noted any more."""
AT_ONCE = 200


def waiting_facts(job: Job, now: datetime) -> dict[str, object]:
    """As `dispatch.outbox.happened` writes them. The event's id follows from job and attempt."""
    about = {
        "name": job.name, "owner": str(job.owner_id), "attempt": job.attempt, "phase": job.phase,
        "reason": job.reason, "message": job.message, "remedy": job.remedy,
        "waits_for": int((now - job.queued_at).total_seconds()),
    }  # fmt: skip
    return {
        "id": str(_event_id(job.pk, job.attempt)),
        "event": EVENT,
        "at": now.isoformat(),
        "kind": "job",
        "about": about,
    }


def _event_id(job_id: uuid.UUID, attempt: int) -> uuid.UUID:
    """The same whenever it is asked for: what was told is not told again."""
    return uuid.uuid5(job_id, f"{EVENT} {attempt}")


def waiting_note(now: datetime) -> None:
    """Write what is to be sent of jobs that have come to wait for long. May be repeated."""
    wanted: dict[uuid.UUID, list[Webhook]] = defaultdict(list)
    active = Webhook.objects.filter(is_active=True, namespace__isnull=False, namespace__closed_at__isnull=True)
    waiting = Delivery.objects.filter(state=State.WAITING).values("webhook").annotate(count=Count("pk"))
    full = waiting.filter(count__gte=MOST_WAITING).values_list("webhook", flat=True)  # they are sent nothing more
    for webhook in active.exclude(pk__in=list(full)).defer("sealed"):
        if EVENT in webhook.events and webhook.namespace_id is not None:
            wanted[webhook.namespace_id].append(webhook)
    if not wanted:
        return
    since = now - settings.YARDMASTER_OUTGOING.waits_after
    found = Job.objects.queued().filter(
        namespace__in=list(wanted), queued_at__lte=since, queued_at__gte=since - NOTED_FOR
    )
    notified = set(
        Delivery.objects.filter(event=EVENT, created_at__gte=since - NOTED_FOR).values_list("key", flat=True)
    )
    waits = found.order_by("queued_at").values_list("pk", "attempt", "namespace")
    new = in_turn((pk, of) for pk, attempt, of in waits if str(_event_id(pk, attempt)) not in notified)[:AT_ONCE]
    for job in found.filter(pk__in=new).select_related("namespace").defer("spec", "waiting").order_by("queued_at"):
        facts = waiting_facts(job, now)
        webhooks = wanted[job.namespace_id]
        known = set(Delivery.objects.filter(webhook__in=webhooks, key=facts["id"]).values_list("webhook_id", flat=True))
        with transaction.atomic():
            for webhook in webhooks:
                if webhook.pk not in known:
                    body = body_of_event(job.pk, facts, job.namespace)
                    delivery_add(webhook, EVENT, body, key=str(facts["id"]))
