"""The populated team as the fuzzed requests see it: its ids by operation, and a credential for everyone who comes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create
from apps.api.allowances import forget_all
from apps.jobs.models import JobAttempt
from apps.jobs.state.task_auth import token_of
from apps.namespaces.service_accounts import service_token_create
from apps.secrets.models import Kind as SecretKind
from apps.secrets.services import secret_set
from apps.stores import storage
from apps.uploads.file_blocks import manifest_append
from apps.uploads.models import Kind, State, Upload
from apps.webhooks.models import Webhook
from apps.webhooks.services import receiver_seal
from tests.fuzz.bodies import bodies_of
from tests.integration.model_versions import job_of
from tests.integration.security.filled import filled
from tests.integration.security.populated import Populated
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile

WHO = ("administrator", "administrator", "manager", "member", "service", "read")
"""Who sends a request, as often: half of all have every right, so that most go past the refusals."""
_OF_THE_JOB = ("task_uploads_retrieve", "task_uploads_complete_create", "task_uploads_parts_create")
TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: digits}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec: {containers: [{name: tensorflow, image: registry/image:1, command: [python, a.py]}]}
"""


class FuzzWorld:
    """What requests are made of: addresses, bodies and headers."""

    def __init__(self, admin: User) -> None:
        self.team = Populated(admin)
        people = self.team.people
        _has_files(self.team.code_version, {"a.py": b"print(1)\n"})
        _has_files(self.team.dataset_version, {"a.txt": b"one\n", "b/c.csv": b"a,b\n1,2\n"})
        self._secrets = {name: _token(people[name]) for name in ("administrator", "manager", "member")}
        self._secrets["read"] = _token(people["administrator"], "read")
        self._secrets["service"] = service_token_create(
            account=self.team.service, name="fuzz", scopes=["read", "jobs", "data"],
            expires_in=timedelta(days=1), actor=people["manager"],
        )[1]  # fmt: skip
        self._secrets["task"] = self._task()
        self._more(admin)
        self.bodies = bodies_of(self._ids())

    def _task(self) -> str:
        """The token of the running job's attempt."""
        job, spec = self.team.job, spec_to_json(spec_from_json(self._spec()))
        job.attempt, job.spec = max(job.attempt, 1), spec
        job.replicas = {"worker": 1}
        job.save()
        JobAttempt.objects.get_or_create(
            job=job, number=job.attempt, defaults={"spec": spec, "queued_at": job.queued_at, "phase": "RUNNING"}
        )
        return token_of(job.pk, job.attempt)

    def _more(self, admin: User) -> None:
        """What the matrix of rights does without: rows that do not refuse who has the right."""
        team, ids = self.team, self.team.ids
        Upload.objects.filter(pk=ids["upload_id"]).update(created_by=admin, file_count=1, part_size=8 << 20)
        manifest_append(ids["upload_id"], 0, [ListedFile("0.txt", 3, "", "a" * 64)])
        keys = {"access_key": "a", "secret_key": "b"}
        secret_set(namespace=team.team, name="keys", value=json.dumps(keys), actor=admin, kind=SecretKind.S3)
        webhook = Webhook.objects.get(pk=ids["webhook_id"])
        receiver_seal(webhook, "https://example.org/a")
        webhook.save()
        ended = {"phase": "SUCCEEDED", "decided_at": timezone.now(), "cleaned_up_at": timezone.now()}
        job = job_of(admin, name="ended", namespace=team.team, spec=team.job.spec, attempt=1, **ended)
        service_token = PersonalToken.objects.get(user=team.service.user, name="fuzz").pk
        of_job = filled(Upload, namespace=team.team, kind=Kind.MODEL, job_id=team.job.pk)
        self._others = {
            "jobs_retry_create": {"job_id": job.pk},
            "jobs_destroy": {"job_id": job.pk},
            "namespaces_service_accounts_tokens_destroy": {"token_id": service_token},
            "namespaces_service_accounts_tokens_rotation_create": {"token_id": service_token},
            **{name: {"upload_id": of_job.pk} for name in _OF_THE_JOB},
        }

    def _spec(self) -> dict[str, Any]:
        worker = {"replicas": 1, "cpu": 1, "memory": "1Gi"}
        code = str(self.team.code_version.pk)
        return {
            "name": "digits", "strategy": "single", "roles": {"worker": worker}, "entry_point": "a.py", "code": code
        }  # fmt: skip

    def _ids(self) -> dict[str, Any]:
        def upload(kind: Kind) -> str:
            return str(filled(Upload, namespace=self.team.team, kind=kind, state=State.COMPLETE).pk)

        return {
            **{name: str(value) for name, value in self.team.ids.items()},
            "spec": self._spec(), "upload": upload(Kind.DATASET), "code_upload": upload(Kind.CODE),
            "dataset_version": str(self.team.dataset_version.pk), "version": str(self.team.version.pk),
            "password": "correct horse battery", "tfjob": TFJOB,
        }  # fmt: skip

    def headers(self, who: str, path: str) -> dict[str, str]:
        secret = self._secrets["task" if path.startswith("/api/v1/task/") else who]
        return {"Authorization": f"Bearer {secret}"}

    def path_parameters(self, path: str, operation: str = "") -> dict[str, str]:
        """The team's own ids for the names in this address of the schema, such that the operation may succeed."""
        ids = self.team.ids | self._others.get(operation, {})
        found = {name: str(ids.get(name, "x")) for name in re.findall(r"{(\w+)}", path)}
        for name in ("version_id", "collection_id"):
            if name in found:
                kind = "dataset" if "/volumes/" in path else path
                found[name] = str(self.team.by_place(kind, name))
        return found


def _has_files(version: Any, content: dict[str, bytes]) -> None:
    """Files in this version, and in the store."""
    for path, data in content.items():
        storage().put(key_join(version.key_prefix, path), data)
    listed = [ListedFile(path, len(data), "", hashlib.sha256(data).hexdigest()) for path, data in content.items()]
    manifest_append(version.upload_id, 0, sorted(listed, key=lambda file: file.path))


def _token(user: User, *scopes: str) -> str:
    return token_create(user=user, name="fuzz", scopes=list(scopes), expires_in=None)[1]


@contextmanager
def fuzz_world(folder: Path) -> Iterator[FuzzWorld]:
    """The world in one transaction that is never committed: each request undoes what it did (`undone`)."""
    store = settings.YARDMASTER_STORAGE
    store = store | {"options": store["options"] | {"root": folder / "objects"}}
    changed = {
        "YARDMASTER_STORAGE": store,
        "YARDMASTER_LOGS_ROOT": folder / "logs",
        "YARDMASTER_LOCAL_ENGINE_FOR_ALL": True,
        "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],
    }
    with override_settings(**changed), transaction.atomic():
        yield FuzzWorld(User.objects.create_user("admin", "admin@example.org", "x", is_staff=True))
        transaction.set_rollback(True)


@contextmanager
def undone() -> Iterator[None]:
    """One request: nothing that it does stays done, and none before it counts against it."""
    forget_all()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
