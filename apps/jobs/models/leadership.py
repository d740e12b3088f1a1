"""Which of several equal processes leads."""

from __future__ import annotations

from django.db import models


class Leadership(models.Model):
    """A post that one process holds until a time, and renews before. Claimed by conditional update."""

    post = models.CharField(max_length=32, primary_key=True)
    holder = models.CharField(max_length=32, blank=True)
    until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.post}: {self.holder}"
