"""The models that jobs produced. Their files are objects under `jobs/<job>/<attempt>/model/`."""

from __future__ import annotations

from django.db import models

from yardmaster.ids import new_id


class Model(models.Model):
    """What one attempt left in its model directory. Listed once it is complete; goes when its job is deleted."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.PROTECT, related_name="+", db_index=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="kept_models")
    attempt = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    upload_id = models.UUIDField(unique=True)
    size = models.BigIntegerField()
    stopped = models.BooleanField(default=False)
    """The task that sent it had been asked to stop: its work was not done."""
    files = models.JSONField(default=list)
    """`[{"path", "size", "sha256", "key"}]`, filled in when complete."""
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["namespace", "id"], name="model_list")]

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}, attempt {self.attempt}"
