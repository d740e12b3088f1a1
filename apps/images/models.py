"""The catalogue of images that tasks may run in."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.namespaces.models import Namespace
from yardmaster.ids import new_id
from yardmaster.job.spec_images import LONGEST_NAME, LONGEST_REFERENCE, PinnedImage


class Image(models.Model):
    """One image, kept by administrators. A job notes at its launch what it was, so that a change here, or a removal,
    changes nothing for jobs that were launched."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    """What jobs call it. It stays: job files have it."""
    reference = models.CharField(max_length=LONGEST_REFERENCE)
    """`registry/repository[:tag]@sha256:…`"""
    python = models.CharField(max_length=16, blank=True)
    """`3.11`; empty: not known."""
    tensorflow = models.CharField(max_length=32, blank=True)
    """`2.19.0`; empty: it has none, or that is not known."""
    strategies = models.JSONField(default=list, blank=True)
    """Values of `Strategy`; empty: all of them."""
    gpus = models.BooleanField(default=False)
    """Whether it has what a script needs in order to use GPUs."""
    description = models.CharField(max_length=500, blank=True)
    pull_secret = models.CharField(max_length=128, blank=True)
    """The name of the secret with which it is pulled."""
    everyone = models.BooleanField(default=True)
    """Whether all namespaces may use it; otherwise only `namespaces`."""
    namespaces = models.ManyToManyField(Namespace, related_name="+", blank=True)
    enabled = models.BooleanField(default=True)
    packages = models.JSONField(null=True, blank=True)
    """The modules or distributions that it has, by name; None: not known."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    def __str__(self) -> str:
        return self.name

    @property
    def pinned(self) -> PinnedImage:
        """What a job notes of it."""
        return PinnedImage(self.name, self.reference, self.pull_secret)

    @property
    def versions(self) -> str:
        """`Python 3.11, TensorFlow 2.19.0`, as far as it is known."""
        known = (("Python", self.python), ("TensorFlow", self.tensorflow))
        return ", ".join(f"{what} {version}" for what, version in known if version)
