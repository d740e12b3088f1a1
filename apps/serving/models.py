"""Services: what a job of the strategy `service` serves, and when it was last used."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class Service(models.Model):
    """A version of a model that is served, or was. One per version: started again, it is this one.

    What runs is its job, with the state, the log and the quota of any job; nothing of that is repeated here.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    version = models.OneToOneField("registry.ModelVersion", on_delete=models.CASCADE, related_name="service")
    job = models.OneToOneField("jobs.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """The newest. None: it was deleted."""
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    idle_seconds = models.PositiveIntegerField()
    """It is stopped after so many seconds without a request."""
    started_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True, blank=True)
    """When its port was first seen to answer with the model loaded; None until then, and after it was lost. From then
    on the time without requests counts."""
    last_used_at = models.DateTimeField(null=True, blank=True)
    """When someone who may launch last asked for a prediction, or extended it."""
    stopped_idle = models.BooleanField(default=False)
    """The portal stopped its newest job because no one used it."""
    starts = models.PositiveIntegerField(default=0)
    """How often it was started: by it the job of one start is told from that of the next."""
    requests = models.PositiveBigIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["namespace", "id"], name="service_list")]

    def __str__(self) -> str:
        return f"service {self.pk} of version {self.version_id}"

    @property
    def idle_limit(self) -> timedelta:
        return timedelta(seconds=self.idle_seconds)
