"""Sessions of the workbench, and the browsers that were let in to one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models

from apps.hosting.models import Hosted
from yardmaster.ids import new_id
from yardmaster.job.programs import JUPYTER, SPARK_HISTORY, TENSORBOARD


class Kind(models.TextChoices):
    """What a session is."""

    TENSORBOARD = TENSORBOARD, "TensorBoard"
    JUPYTER = JUPYTER, "JupyterLab"
    SPARK_HISTORY = SPARK_HISTORY, "Spark history"


_HEALTH = {
    Kind.TENSORBOARD.value: "data/environment",
    Kind.JUPYTER.value: "api",
    Kind.SPARK_HISTORY.value: "api/v1/version",
}
_STEPS = {
    Kind.TENSORBOARD.value: {"staging": "Preparing.", "running": "Starting TensorBoard."},
    Kind.JUPYTER.value: {"staging": "Preparing.", "running": "Starting JupyterLab."},
    Kind.SPARK_HISTORY.value: {"staging": "Preparing.", "running": "Starting Spark's history server."},
}


class WorkbenchSession(Hosted):
    """A TensorBoard or a Spark history of a namespace, or the Jupyter of one of its members. Started again, it is this
    one.

    What runs is its job, with the state, the log and the quota of any job; nothing of that is repeated here.
    """

    KIND = "workbench"
    NOUN = "session"

    kind = models.CharField(max_length=16, choices=Kind)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    """Whose Jupyter it is; who first started the TensorBoard, which is the namespace's."""
    subject = models.CharField(max_length=80)
    """What it is for, in one word: `namespace`, `job:ID`, `jobs:DIGEST` or `user:ID`."""
    job_ids = models.JSONField(default=list)
    """The jobs that a TensorBoard or a Spark history shows; empty: all of its namespace."""
    size = models.CharField(max_length=32)
    """The preset that its newest start had."""
    token = models.ForeignKey(
        "accounts.PersonalToken", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """What the SDK in a Jupyter is signed in with. None: its user revoked it, or none was made."""
    token_start = models.PositiveIntegerField(default=0)
    """The start (of `starts`) for which a token was made last."""
    taken_over_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    """An administrator who has taken over this start of a Jupyter, beside its owner."""
    requirements = models.JSONField(default=list, blank=True)
    """Packages that a Jupyter has beside its image's, with exact versions: those of an environment of its namespace."""
    spark_executors = models.PositiveSmallIntegerField(default=0)
    """Of the Spark cluster that a Jupyter has from its newest start on. 0: it has none."""
    spark_cluster = models.CharField(max_length=63, default="", blank=True)
    """The registered cluster that they are of. Empty: they are within the session."""
    spark_cores = models.PositiveSmallIntegerField(default=1)
    """Of each executor on a registered cluster."""
    spark_memory = models.BigIntegerField(default=1 << 30)
    """The same in bytes (`spark.executor.memory`)."""
    again = models.JSONField(null=True, blank=True)
    """How it is started again once its job has ended: `{"by", "size", "engine"}`, and what else the start
    asked for. None: it is not."""
    problem = models.CharField(max_length=500, blank=True, default="")
    """Why it was stopped, or not started again, by the portal itself. Empty from the next start on."""

    class Meta(Hosted.Meta):
        constraints = [
            models.UniqueConstraint(fields=["namespace", "kind", "subject"], name="one_session_per_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} for {self.subject}"

    @property
    def prefix(self) -> str:
        """Below which path it is, at its origin and at its own port alike."""
        return f"/w/{self.pk}/"

    @property
    def health_path(self) -> str:
        return self.prefix + _HEALTH[self.kind]

    @property
    def longest_life(self) -> timedelta:
        found: timedelta = settings.YARDMASTER_WORKBENCH["LONGEST"]
        return found

    @property
    def steps(self) -> Mapping[str, str]:
        return _STEPS[self.kind]

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"kind": self.kind, "shows": self.subject}

    @property
    def is_personal(self) -> bool:
        """Whether it is its owner's alone."""
        return self.kind == Kind.JUPYTER


class Home(models.Model):
    """The files of a user's Jupyters in one namespace, as one engine keeps them between sessions.

    Not removed with the user or the namespace, but before: its engine has the files.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.PROTECT, related_name="+", db_index=False)
    engine = models.CharField(max_length=63)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    size = models.BigIntegerField()
    """The bytes that it has of the namespace's storage."""
    is_measured = models.BooleanField()
    """`size` is what was found there; else what the engine reserves for each."""
    is_whole = models.BooleanField(default=True)
    """All of it was measured."""
    goes = models.BooleanField(default=False)
    """It is to be removed."""
    message = models.TextField(blank=True)
    """What its engine had to say against the last look, or holds its removal up."""
    next_look_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """None: nothing changes there."""
    setbacks = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "kept files of Jupyters"
        constraints = [models.UniqueConstraint(fields=["namespace", "engine", "owner"], name="one_home_per_user")]

    def __str__(self) -> str:
        return f"home of {self.owner_id} on {self.engine}"


class Entrance(models.Model):
    """A browser that was given a ticket to a session, and the cookie that it got for it. It goes with the sign-in."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(WorkbenchSession, on_delete=models.CASCADE, related_name="entrances", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    sign_in = models.ForeignKey("sessions.Session", on_delete=models.CASCADE, related_name="+")
    """That of the portal's pages, which ended ends this."""
    cookie_digest = models.CharField(max_length=64, null=True, blank=True, unique=True)
    """None until the ticket was exchanged, which works once."""
    made_at = models.DateTimeField()
    """When the ticket was made; then, within an hour, when the cookie was used last."""

    class Meta:
        indexes = [models.Index(fields=["made_at"], name="entrance_made")]

    def __str__(self) -> str:
        return f"entrance of {self.user_id} to {self.session_id}"
