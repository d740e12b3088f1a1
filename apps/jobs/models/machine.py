"""The machines of the engine `hosts`, where administrators list them on a page and not in a file.

Written by `apps.administration.machines`, read by `apps.jobs.engines.machine_list`.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class HostMachine(models.Model):
    """One machine. `entry` is what a file would say of it (`yardmaster.engines.hosts.inventory`), without `cordoned`;
    name, address and port are beside it so that no two machines have the same."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=63, unique=True)
    address = models.CharField(max_length=15)
    port = models.PositiveIntegerField(default=22)
    entry = models.JSONField()
    is_draining = models.BooleanField(default=False)
    """It takes no further tasks; what runs there continues."""
    version = models.PositiveIntegerField(default=1)
    """Of the entry: one more with each change, so that no one undoes what they have not seen."""
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["address", "port"], name="one_machine_per_address")]

    def __str__(self) -> str:
        return self.name
