"""A team with one of everything that an address can name, and everyone who may come to it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.buckets.models import Bucket
from apps.code.models import Code, CodeImport, CodeVersion
from apps.connections.models import DataConnection
from apps.datasets.models import ConnectionCopy, Dataset, DatasetVersion, MadeDataset
from apps.environments.models import Environment
from apps.images.models import Image
from apps.jobs.models import AdvanceReservation, Hold, LaunchPreset, RetentionRule, Volume
from apps.namespaces.models import Invitation, Membership, PriorityClass, Role, ScheduledQuota, ShareNode
from apps.namespaces.service_accounts import service_account_create, service_token_create
from apps.namespaces.services import team_create
from apps.notifications.models import Broadcast
from apps.notifications.unsubscribing import unsubscribe_token
from apps.registry.models import Model
from apps.removals.models import Removal
from apps.schedules.models import JobTemplate, Schedule, TemplateRevision
from apps.secrets.models import Secret
from apps.serving.models import Service
from apps.spark.models import SparkCluster
from apps.sweeps.models import Sweep
from apps.uploads.models import Kind, State, Upload
from apps.webhooks.models import Delivery, Webhook
from apps.workbench.models import WorkbenchSession
from tests.integration.model_versions import job_of, version_of
from tests.integration.security.filled import filled
from tests.integration.security.matrix import SCOPES, Route
from yardmaster.job.spec_json import spec_from_json, spec_to_json

_UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


class Populated:
    """The people, and the ids of what the team has."""

    def __init__(self, admin: User) -> None:
        self.admin = admin
        self._secrets: dict[str, str] = {}
        self._cookies: dict[str, str] = {}
        # Each handler would load all of the middleware again.
        self._handler = APIClient().handler
        make = User.objects.create_user
        self.people = {
            name: make(name, f"{name}@example.org", "x") for name in ("stranger", "viewer", "member", "manager")
        }
        self.people["administrator"] = admin
        manager = self.people["manager"]
        self.team = team_create(slug="vision", title="", actor=admin, manager=manager)
        for name in ("viewer", "member"):
            Membership.objects.create(namespace=self.team, user=self.people[name], role=Role(name))
        self.ids: dict[str, Any] = {"namespace_id": self.team.pk, "user_id": self.people["member"].pk, "pk": 1}
        self.service = service_account_create(
            namespace=self.team, name="nightly", role=Role.MEMBER, description="", actor=manager
        )
        filled(PriorityClass, name="token")
        self._jobs(manager)
        self._data()
        self._rest(manager)

    def _jobs(self, owner: User) -> None:
        spec = {"name": "digits", "strategy": "single", "roles": {"worker": {"replicas": 1}}, "entry_point": "a.py"}
        columns = {"spec": spec, "needs": {}, "strategy": "single", "namespace": self.team, "phase": "RUNNING"}
        self.job = job_of(owner, **columns)
        self.version = version_of(self.job)
        self.ids |= {"job_id": self.job.pk, "id": self.job.pk, "model_id": Model.objects.get().pk}

    def _versions(self, kind: Kind, parent: Any, model: Any) -> Any:
        upload = filled(Upload, namespace=self.team, kind=kind, state=State.COMPLETE, used=True)
        return filled(model, id=upload.target_id, parent=parent, upload_id=upload.pk, number=1)

    def _data(self) -> None:
        self.dataset = filled(Dataset, namespace=self.team, name="digits", latest_number=1)
        self.dataset_version = self._versions(Kind.DATASET, self.dataset, DatasetVersion)
        self.code = filled(Code, namespace=self.team, name="digits", latest_number=1)
        self.code_version = self._versions(Kind.CODE, self.code, CodeVersion)

    def _rest(self, owner: User) -> None:
        team, admin, tomorrow = self.team, self.admin, timezone.now() + timedelta(days=1)
        volume = filled(Volume, namespace=team, engine="local")
        service_job, session_job = (
            job_of(owner, name=name, namespace=team, strategy="service", phase="RUNNING") for name in ("serve", "board")
        )
        filled(Secret, namespace=team, name="token")
        filled(DataConnection, namespace=team, name="token", hosts="one.example.org")
        filled(Image, name="token", reference="registry/image:1")
        filled(SparkCluster, name="token", master="spark://127.0.0.1:9", state="checking")
        self.ids |= {
            "volume_id": volume.pk,
            "upload_id": filled(Upload, namespace=team, kind=Kind.DATASET, created_by=owner).pk,
            "bucket_id": filled(Bucket, namespace=team).pk,
            "copy_id": filled(ConnectionCopy, namespace=team, connection="token").pk,
            "made_id": filled(MadeDataset, namespace=team).pk,
            "import_id": filled(CodeImport, namespace=team).pk,
            "environment_id": filled(Environment, namespace=team).pk,
            "removal_id": filled(Removal, namespace_id=team.pk, asked_by_id=admin.pk).pk,
            "service_id": filled(Service, namespace=team, version=self.version, job=service_job, started_by=owner).pk,
            "session_id": filled(
                WorkbenchSession, namespace=team, owner=owner, job=session_job, kind="tensorboard", started_by=owner
            ).pk,
            "sweep_id": filled(
                Sweep, namespace=team, owner=owner, base=self.job.spec, plan={"parameters": {"lr": [1]}}, count=1,
                state="paused",
            ).pk,
            "webhook_id": self._webhook(),
            "schedule_id": self._schedule(owner),
            "invitation_id": filled(Invitation, namespace=team, created_by=admin).pk,
            "change_id": filled(ScheduledQuota, namespace=team, limits={}, ends_at=tomorrow).pk,
            "kind": "team",
            "preset_id": filled(LaunchPreset, name="Small", spec={"strategy": "single"}).pk,
            "node_id": filled(ShareNode, namespace=team).pk,
            "account_id": self.service.pk,
            "reserved_id": filled(
                AdvanceReservation, namespace=team, begins_at=timezone.now(), ends_at=timezone.now() + timedelta(days=9)
            ).pk,
            "hold_id": Hold.objects.create(namespace=team, at=timezone.now()).pk,
            "rule_id": filled(RetentionRule, namespace=team, kind="logs").pk,
            "token_id": token_create(user=owner, name="own", scopes=[], expires_in=None)[0].pk,
            "name": "token", "task": "worker-0", "stage": "production", "rest": "x/", "path": "x", "key": "x-y",
            "token": "unknown", "uidb36": "1", "project": "numpy", "filename": "x.whl",
            "engine": "local", "action": "lock", "month": "2026-01", "provider_id": "unknown",
            "engine_name": settings.YARDMASTER_DEFAULT_ENGINE, "broadcast_id": self._broadcast(),
            "what": "use", "number": 1, "machine_name": "token",
        }  # fmt: skip

    def _broadcast(self) -> Any:
        return filled(Broadcast, by=self.admin, text="Maintenance at noon", begins_at=timezone.now()).pk

    def _webhook(self) -> Any:
        webhook = filled(Webhook, namespace=self.team)
        self.ids["delivery_id"] = filled(Delivery, webhook=webhook).pk
        return webhook.pk

    def _schedule(self, owner: User) -> Any:
        template = filled(JobTemplate, namespace=self.team, created_by=owner)
        spec = spec_to_json(spec_from_json({**self.job.spec, "code": str(self.code_version.pk)}))
        filled(TemplateRevision, template=template, number=template.revision, spec=spec, parameters=[])
        self.ids["template_id"] = template.pk
        columns = {"cron": "0 2 * * *", "time_zone": "UTC", "overlap": "skip"}
        return filled(Schedule, namespace=self.team, template=template, owner=owner, **columns).pk

    def address(self, route: Route) -> str:
        """The route with the team's own ids in it."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name in ("version_id", "collection_id"):
                return str(self.by_place(route.pattern, name))
            if route.pattern.startswith("/unsubscribe/") or route.pattern.startswith("unsubscribe/"):
                return unsubscribe_token(self.people["member"], ["job.failed"])
            return str(self.ids.get(name, _UNKNOWN))

        text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", lambda found: f"<str:{found[1]}>", route.pattern)
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", value, text)

    def by_place(self, pattern: str, name: str) -> Any:
        """The id of the code, model or dataset that this address is about, or of its version."""
        if "code" in pattern:
            return self.code_version.pk if name == "version_id" else self.code.pk
        if "model" in pattern:
            return self.version.pk if name == "version_id" else self.ids["model_id"]
        return self.dataset_version.pk if name == "version_id" else self.dataset.pk

    def client_of(self, who: str) -> APIClient:
        """A client as this person, or as a program with a token of the administrator of this one scope: signed in
        once, so that thousands of requests leave one session."""
        client = APIClient(raise_request_exception=False)
        client.handler = self._handler
        if who in SCOPES:
            if who not in self._secrets:
                _, self._secrets[who] = token_create(user=self.admin, name=who, scopes=[who], expires_in=None)
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {self._secrets[who]}")
        elif who == "service":
            if who not in self._secrets:
                scopes = ["read", "jobs", "data"]
                _, self._secrets[who] = service_token_create(
                    account=self.service,
                    name=who,
                    scopes=scopes,
                    expires_in=timedelta(days=1),
                    actor=self.people["manager"],
                )
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {self._secrets[who]}")
        elif who in self.people:
            if who not in self._cookies:
                client.force_login(self.people[who])
                self._cookies[who] = client.cookies[settings.SESSION_COOKIE_NAME].value
            client.cookies[settings.SESSION_COOKIE_NAME] = self._cookies[who]
        return client
