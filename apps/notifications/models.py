"""What each user wants to be told of and how, what waits for a digest, and every mail that is to be sent or was.

Not here: the words of a mail (`letter`) and how it is sent (`sending`).
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from yardmaster.ids import new_id
from yardmaster.outgoing.notices import FLOOD, Pace, Way


class Event(models.TextChoices):
    """What a mail tells of."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITS = "waits"


class WaitLimit(models.IntegerChoices):
    """Minutes of waiting that people may want to hear of."""

    QUARTER = 15, "15 minutes"
    HOUR = 60, "an hour"
    HALF_DAY = 240, "4 hours"
    DAY = 1440, "a day"


class MailChoices(models.Model):
    """What one person wants to be notified of about the jobs that they launched. No row: the defaults."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="mail_choices"
    )
    on_success = models.BooleanField(default=False)
    on_failure = models.BooleanField(default=True)
    on_stop = models.BooleanField(default=False)
    on_wait = models.BooleanField(default=False)
    wait_minutes = models.PositiveIntegerField(choices=WaitLimit, default=WaitLimit.HOUR)
    with_log = models.BooleanField(default=True)
    """Whether a mail may hold lines of the job's log: they leave the portal with it."""
    daily_hour = models.PositiveSmallIntegerField(default=8, db_default=8)
    """When daily digests are made, in the user's time zone."""
    flood = models.PositiveSmallIntegerField(default=FLOOD, db_default=FLOOD)
    """Events of one kind in an hour, after which a digest is made. 0: never."""

    def __str__(self) -> str:
        return f"mail choices of {self.user_id}"

    def wants(self, event: Event) -> bool:
        return {
            Event.SUCCEEDED: self.on_success,
            Event.FAILED: self.on_failure,
            Event.STOPPED: self.on_stop,
            Event.WAITS: self.on_wait,
        }[event]


class NoticeChoice(models.Model):
    """How one person is told of one kind of event, everywhere or in one namespace. No row: by mail, at once, where
    `MailChoices` wants it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=40)
    """One of `yardmaster.outgoing.notices.KINDS`."""
    namespace = models.ForeignKey("namespaces.Namespace", null=True, on_delete=models.CASCADE, related_name="+")
    way = models.CharField(max_length=4, choices=[(one.value, one.value) for one in Way])
    pace = models.CharField(max_length=6, choices=[(one.value, one.value) for one in Pace])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "kind", "namespace"], name="one_notice_choice"),
            models.UniqueConstraint(
                fields=["user", "kind"], condition=models.Q(namespace__isnull=True), name="one_notice_choice_of_kind"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.user_id}: {self.way}, {self.pace}"


class Note(models.Model):
    """One event that one person is told of: what waits for a digest, and what was handed on. Mails about jobs that are
    sent at once are `Notice`s instead."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=100)
    """What it tells of, once for each user."""
    kind = models.CharField(max_length=40)
    namespace = models.ForeignKey(
        "namespaces.Namespace", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    way = models.CharField(max_length=4, choices=[(one.value, one.value) for one in Way])
    body = models.JSONField(encoder=DjangoJSONEncoder)
    """What is told, as `apps.webhooks.fanout` writes bodies; or `title` and `url`."""
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    """When its digest is made. None: it was handed on."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_note_per_key")]
        indexes = [
            models.Index(fields=["due_at"], name="notes_due", condition=models.Q(due_at__isnull=False)),
            models.Index(fields=["user", "kind", "created_at"], name="notes_of_user"),
            models.Index(fields=["created_at"], name="notes_by_age"),
            models.Index(fields=["namespace"], name="notes_of_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user_id}, by {self.way}"


class Notice(models.Model):
    """One mail to one person about one attempt of a job. Written with what it tells of, sent afterwards."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="+", db_index=False)
    attempt = models.PositiveIntegerField()
    event = models.CharField(max_length=10, choices=Event)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    """When to try (again). A worker that tries moves it ahead first, so that no other does. None: nothing left to
    do."""
    tries = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)
    """Why it is not sent yet, or never will be."""
    sent_by = models.CharField(max_length=6, blank=True, default="", db_default="")
    """`chat`, `digest` or `none`: it is no mail of its own."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt", "event", "user"], name="one_notice_per_event"),
        ]
        indexes = [
            models.Index(fields=["user", "id"], name="notices_of_user"),
            models.Index(fields=["due_at"], name="notices_due", condition=models.Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.event}: attempt {self.attempt} of {self.job_id}, to {self.user_id}"

    @property
    def is_given_up(self) -> bool:
        return self.due_at is None and self.sent_at is None and not self.sent_by


class Announcement(models.Model):
    """One mail to one person about what the portal has done by itself, in words that are known when it is written."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    """What it tells of, once for each user."""
    kinds = models.CharField(max_length=800, blank=True, default="", db_default="")
    """Those of `yardmaster.outgoing.notices.KINDS` that it tells of, with commas; empty: it cannot be switched off."""
    subject = models.CharField(max_length=200)
    body = models.TextField()
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_announcement_per_key")]
        indexes = [models.Index(fields=["due_at"], name="announcements_due", condition=models.Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.key}, to {self.user_id}"


class QuotaLevel(models.Model):
    """Which level of a quota the managers of a namespace were told of last, while it is not below it again. Written by
    `apps.administration.quota_warnings`."""

    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    resource = models.CharField(max_length=300)
    """A field of the quota, or the name of another resource."""
    level = models.PositiveSmallIntegerField()
    """Percent."""
    limit = models.FloatField(null=True)
    """What it is a part of. None: kept before limits were."""
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "resource"], name="one_quota_level")]

    def __str__(self) -> str:
        return f"{self.level} % of {self.resource} in {self.namespace_id}"


class Broadcast(models.Model):
    """What an administrator tells everyone on every page, at most one at a time. A change makes a new row, which people
    see again who had hidden the one before. Written by `apps.notifications.broadcasts`."""

    class Kind(models.TextChoices):
        INFORMATION = "information", "Information"
        WARNING = "warning", "Warning"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    text = models.CharField(max_length=500)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.INFORMATION)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    """None: until it is removed."""
    on_sign_in = models.BooleanField(default=False)
    """Also to those who are not signed in."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField()
    by_mail = models.BooleanField(default=False)
    mailed_upto = models.UUIDField(null=True, blank=True)
    """Users are mailed in the order of their ids, so many in a while; this one was the last."""
    mailed_at = models.DateTimeField(null=True, blank=True)
    """When the mails to all of them were written."""

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends_at=None) | models.Q(ends_at__gt=models.F("begins_at")),
                name="a_notice_ends_after_it_begins",
            )
        ]

    def __str__(self) -> str:
        return f"notice {self.id} to all"

    def is_current(self, now: datetime) -> bool:
        return self.begins_at <= now and (self.ends_at is None or now < self.ends_at)


class HiddenBroadcast(models.Model):
    """That a person does not want to see it any more."""

    broadcast = models.ForeignKey(Broadcast, on_delete=models.CASCADE, related_name="hidden", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["broadcast", "user"], name="a_notice_is_hidden_once")]

    def __str__(self) -> str:
        return f"{self.broadcast_id} hidden by {self.user_id}"
