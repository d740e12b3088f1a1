"""The columns of what users start, reach and stop: a job with a port, and when it was last used. Abstract: each kind
has a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class Hosted(models.Model):
    """Something with a port that runs, or did: started again, it is this one.

    What runs is its job, with the state, the log and the quota of any job; nothing of that is repeated here.
    """

    KIND: ClassVar[str]
    """Its name for programs: in the audit, and in the request keys of its launches. No other kind has it."""
    NOUN: ClassVar[str]
    """Its name for people, within a sentence."""
    READY_STATUSES: ClassVar[frozenset[int]] = frozenset({200})
    """Answers to the health check that say that it can be used."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    job = models.OneToOneField("jobs.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """The newest. None: it was deleted."""
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    idle_seconds = models.PositiveIntegerField()
    """It is stopped after so many seconds without use."""
    started_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    """When its port was first seen to answer that it is ready; None until then, and after it was lost. From then on the
    time without use counts."""
    last_used_at = models.DateTimeField(null=True, blank=True)
    """When someone who may launch last used it, or extended it."""
    stopped_idle = models.BooleanField(default=False)
    """The portal stopped its newest job because no one used it."""
    starts = models.PositiveIntegerField(default=0)
    """Grows with each start, and with a stop while it does not run: a start under way compares it, and does not write
    its job down where it has grown. The jobs of two starts differ by it, too."""

    class Meta:
        abstract = True
        indexes = [models.Index(fields=["namespace", "id"], name="%(class)s_list")]

    def __str__(self) -> str:
        return f"{self.NOUN} {self.pk}"

    @property
    def idle_limit(self) -> timedelta:
        return timedelta(seconds=self.idle_seconds)

    @property
    def longest_life(self) -> timedelta | None:
        """It may run for so long, however much it is used. None: for ever."""
        return None

    @property
    def health_path(self) -> str:
        """What its port is asked to see whether it can be used: a path, with a query where it needs one."""
        raise NotImplementedError  # a hook: every kind has its own

    @property
    def steps(self) -> Mapping[str, str]:
        """What it does while its task is `staging`, or `running` without an answer of its port: a sentence each."""
        return {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the audit tells of it."""
        return {}
