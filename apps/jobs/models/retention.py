"""Rules by which what ended jobs left is removed, and what was removed by them.

Not here: what a rule means (`yardmaster.lifecycle.retention`).
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.dispatch import Signal

from yardmaster.ids import new_id
from yardmaster.lifecycle.retention import LONGEST_DAYS, Kind, Rule

KINDS = [(one.value, one.value) for one in Kind]
jobs_in_use = Signal()
"""Which ended jobs does something still refer to that must find them whole? A receiver is given `job_ids`, those that
are asked about (None: all there are), and returns a query or a list of the ids among them, however old they are; it is
read as part of another query."""


class RetentionRule(models.Model):
    """An administrator's rule for one kind: of the portal, or of one namespace in the place of the portal's."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(
        "namespaces.Namespace", null=True, blank=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    """None: of every namespace that has none of its own."""
    kind = models.CharField(max_length=8, choices=KINDS)
    days = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_DAYS)]
    )
    """None: for ever."""
    newest = models.PositiveIntegerField(default=0)
    tags = models.JSONField(default=list, blank=True)
    spares_models = models.BooleanField(default=True)
    only_archived = models.BooleanField(default=False)
    reason = models.CharField(max_length=300)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind"], condition=Q(namespace=None), name="one_retention_rule_of_portal"),
            models.UniqueConstraint(fields=["namespace", "kind"], name="one_retention_rule_of_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.namespace_id or 'the portal'}"

    @property
    def rule(self) -> Rule:
        """As the decision reads it."""
        return Rule(
            Kind(self.kind), self.days, self.newest, frozenset(self.tags), self.spares_models, self.only_archived
        )


class JobCleared(models.Model):
    """What of a job was removed by a rule: its log, its files, or both. A retry begins new ones beside."""

    job = models.OneToOneField("jobs.Job", primary_key=True, on_delete=models.CASCADE, related_name="cleared")
    logs_at = models.DateTimeField(null=True, blank=True)
    logs_attempt = models.PositiveIntegerField(default=0)
    """Of the attempts up to this one."""
    logs_rule = models.CharField(max_length=200, blank=True)
    """The rule in words, as it was then."""
    logs_done_at = models.DateTimeField(null=True, blank=True)
    """When the last byte was removed; until then each pass continues."""
    files_at = models.DateTimeField(null=True, blank=True)
    files_attempt = models.PositiveIntegerField(default=0)
    files_rule = models.CharField(max_length=200, blank=True)
    files_done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["logs_at"], name="logs_being_cleared", condition=Q(logs_at__isnull=False, logs_done_at=None)
            ),
            models.Index(
                fields=["files_at"], name="files_being_cleared", condition=Q(files_at__isnull=False, files_done_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"what was cleared of {self.job_id}"
