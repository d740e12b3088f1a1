"""A row in every table: those of a populated team (`security.populated`), and one of whatever it leaves empty.

Not here: more than one of each (`multiplied`).
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db import IntegrityError, models, transaction

from tests.integration.security.filled import filled
from tests.integration.security.populated import Populated

_KNOWN: dict[str, dict[str, Any]] = {
    "jobs.JobAttempt": {"number": 1, "phase": "RUNNING", "spec": {}},
    "jobs.TaskFact": {"attempt": 1, "role": "worker", "index": 0},
    "jobs.ScalarPoint": {"attempt": 1, "run": "train", "tag": "loss"},
    "jobs.JobMetric": {"attempt": 1, "name": "loss", "latest": 1.0, "lowest": 0.5, "highest": 2.0},
    "jobs.JobTag": {"name": "baseline"},
    "jobs.JobColumns": {"columns": ["metric:loss", "gpu_hours"]},
    "jobs.JobPackages": {"attempt": 1, "lock": {}},
    "jobs.Reservation": {"attempt": 1, "role": "worker", "engine": "local", "tasks": 1},
    "jobs.WaitEstimate": {"attempt": 1, "engine": "local"},
}
_NONE = {
    "api.IdempotencyRecord", "jobs.AdmissionLock", "dispatch.OutboxEvent", "dispatch.Leadership",
    "audit.AuditRetention", "jobs.QueuePass", "jobs.EngineNow", "jobs.EngineProbe", "jobs.EngineSample",
    "jobs.PreemptionPolicy", "jobs.Preemption", "jobs.Hold", "jobs.TaskShell", "jobs.JobPackages",
    "namespaces.DefaultQuota", "namespaces.EngineNamespace", "accounts.SignInLink", "accounts.DeviceSignIn",
    "accounts.Browser", "workbench.Entrance", "accounting.BudgetWarning",
}  # fmt: skip
"""Of these no page lists rows that users make, or the row must have a meaning."""


def one_of_each(populated: Populated) -> None:
    """Fill what is empty. A row refers to the team's own, where there is one."""
    waiting = [kind for kind in apps.get_models() if kind.__module__.startswith("apps.") and _is_wanted(kind)]
    while waiting:
        left = [kind for kind in waiting if not _fill(kind, populated)]
        if len(left) == len(waiting):
            raise AssertionError(f"no row could be made of {left}")
        waiting = left


def _is_wanted(kind: type[models.Model]) -> bool:
    return kind._meta.label not in _NONE and not kind._default_manager.exists()


def _fill(kind: type[models.Model], populated: Populated) -> bool:
    known = _relations(kind, populated) | _KNOWN.get(kind._meta.label, {})
    try:
        with transaction.atomic():
            filled(kind, **known)
    except IntegrityError:
        return False
    return True


def _relations(kind: type[models.Model], populated: Populated) -> dict[str, Any]:
    own: dict[str, Any] = {
        "accounts.User": populated.people["manager"], "namespaces.Namespace": populated.team, "jobs.Job": populated.job
    }  # fmt: skip
    found = {}
    for field in kind._meta.concrete_fields:
        if isinstance(field, models.ForeignKey):
            other = field.related_model
            found[field.name] = own.get(other._meta.label) or other._default_manager.order_by("pk").first()  # type: ignore[union-attr]
        elif field.name in ("job_id", "namespace_id", "owner_id", "user_id"):
            found[field.name] = own[
                {"j": "jobs.Job", "n": "namespaces.Namespace"}.get(field.name[0], "accounts.User")
            ].pk
    return {name: value for name, value in found.items() if value is not None}
