"""A portal with everything on its pages: jobs in every phase that lasts, data of every kind, a team, two people.

Made through the SDK and the REST API, as users make it; the digits are really trained. Ada is the administrator (who
alone may use the local engine by default), Bob a colleague.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.real.digits import EXAMPLE, digits, picture
from tests.real.portal import CHEAP, WHOLE, RealPortal, real_portal
from tests.real.scene import until
from yardmaster_client import Job, Yardmaster

VALLEY = Path(__file__).parents[2] / "examples" / "sweep"
SMALL = {"cpu": 0.1, "memory": "256Mi"}
TASK = {"cpu": 0.25, "memory": "1.5Gi"}
EATER = """
import time
kept = []
for number in range(40):
    kept.append(b"x" * (32 << 20))
    print(f"batch {number}: {len(kept) * 32} MiB in memory", flush=True)
    time.sleep(0.1)
time.sleep(60)
"""
BOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "cells": [
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Squares"},
            *(
                {
                    "cell_type": "code",
                    "id": name,
                    "metadata": {},
                    "outputs": [],
                    "execution_count": None,
                    "source": text,
                }
                for name, text in {
                    "b": "squares = [n * n for n in range(5)]",
                    "c": "print(squares)\nsum(squares)",
                }.items()
            ),
        ],
    }
)
MOTLEY = """
import os, sys
os.makedirs(os.environ["MODEL_DIR"], exist_ok=True)
with open(os.path.join(os.environ["MODEL_DIR"], "weights.txt"), "w") as file:
    file.write("0.5")
print("\\x1b[1mstep\\x1b[0m 1 \\x1b[32mloss 0.31\\x1b[0m", flush=True)
print("WARNING: the learning rate is high", flush=True)
print("ERROR: a shard could not be read, trying again", file=sys.stderr, flush=True)
for number in range(200):
    print(f"line {number} of the quiet part", flush=True)
"""
_REVISE = """
import sys
import django
django.setup()
from apps.accounts.models import User
from apps.schedules.models import JobTemplate
from apps.schedules.templates import template_change
template = JobTemplate.objects.select_related("namespace").get(pk=sys.argv[1])
spec = template.revisions.get(number=1).spec | {"arguments": ["--steps={{steps}}", "--seed=7"], "retries": 2}
template_change(user=User.objects.get(username="ada"), template=template, spec=spec)
"""
_UNSUBSCRIBE = """
import sys
import django
django.setup()
from apps.accounts.models import User
from apps.notifications.unsubscribing import unsubscribe_token
User.objects.filter(username=sys.argv[1], email="").update(email="bob@example.org")
print(unsubscribe_token(User.objects.get(username=sys.argv[1]), ["job.failed", "quota.full"]))
"""
QUICK = {"YARDMASTER_LOOK_AGAIN": "1", "YARDMASTER_JOB_LEASE": "5", **CHEAP}


@dataclass
class World:
    """A running portal and the ids of what is in it."""

    portal: RealPortal
    client: Yardmaster
    ids: dict[str, str]

    @property
    def url(self) -> str:
        return self.portal.url


@contextmanager
def world(*, trained: bool = True) -> Iterator[World]:
    """A portal with all its processes and Ada in it; with `trained` also everything that pages can show."""
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-browser-") as home,
        real_portal(Path(home), WHOLE, QUICK) as portal,
        Yardmaster(portal.url, portal.token_of("ada", is_staff=True)) as client,
    ):
        one = World(portal, client, {})
        portal.token_of("bob")
        _stores(one, Path(home) / "material")
        if trained:
            _team(one)
            _jobs(one)
        yield one
        for job in client.jobs.list():
            if not job.is_final:
                client.jobs.stop(job.id)
        until(lambda: all(job.cleaned_up_at for job in client.jobs.list()), 90, "all jobs to be cleaned up")


def _stores(one: World, material: Path) -> None:
    data = digits(material / "digits", "--shards=4")
    (data / "README.md").write_text("# Digits\n\nHandwritten, 8 x 8 pixels, 1,797 of them.\n")
    one.ids["dataset-first"] = _latest(one.client.datasets.put("digits", [data]))
    (data / "classes.csv").write_text("label,word\n" + "".join(f"{n},digit {n}\n" for n in range(10)))
    picture(data / "sample.png")
    item = one.client.datasets.put("digits", [data])
    one.ids |= {"dataset": item.id, "dataset-version": _latest(item)}
    one.ids["dataset-folders"] = one.client.datasets.put("reviews", [_reviews(material)], unpack=True).id
    one.ids["code-first"] = _latest(one.client.code.put("digits", [EXAMPLE]))
    with tempfile.TemporaryDirectory() as folder:
        for file in EXAMPLE.glob("*.py"):
            text = file.read_text()
            (Path(folder) / file.name).write_text(re.sub(r"default=0\.003", "default=0.005", text))
        (Path(folder) / "eater.py").write_text(EATER)
        (Path(folder) / "motley.py").write_text(MOTLEY)
        (Path(folder) / "book.ipynb").write_text(BOOK)
        item = one.client.code.put("digits", [Path(folder)])
    one.ids |= {"code": item.id, "code-version": _latest(item)}


def _reviews(material: Path) -> Path:
    """An archive with more files than one page shows, in folders."""
    target = material / "reviews.tar"
    with tarfile.open(target, "w") as archive:
        for number in range(90):
            info = tarfile.TarInfo(f"{'test' if number % 3 else 'train'}/{'neg' if number % 2 else 'pos'}/{number}.txt")
            info.size = number
            archive.addfile(info, io.BytesIO(b"x" * number))
    return target


def _latest(item: Any) -> str:
    assert item.latest is not None
    return str(item.latest.id)


_CONNECTIONS = """
import sys
from django.utils import timezone
from apps.connections.models import DataConnection, State

kittens = {
    "name": "SQL_PUBLIC_KITTENS", "tables": ["PUBLIC.KITTENS"], "partitions": 1024, "rows": 30000, "problem": "",
    "columns": [
        {"name": "ID", "type": "Long", "is_key": True}, {"name": "NAME", "type": "String", "is_key": False},
        {"name": "WEIGHT", "type": "Double", "is_key": False},
    ],
    "preview": [["1", "WARM KITTY", "0.5"], ["2", "SOFT KITTY", None], ["3", "LITTLE BALL OF FUR", "1.5"]],
}
fields = ["name", "metadata.width", "metadata.height", "pixels", "label", "taken", "kept", "mark"]
images = {
    "name": "IMAGES", "tables": [], "partitions": 512, "rows": 1200000, "problem": "",
    "columns": [{"name": "key", "type": "long"}, *({"name": f"val.{one}", "type": "int"} for one in fields)],
    "preview": [[str(one)] * 9 for one in range(5)],
}
closed = {
    "name": "payroll", "tables": [], "partitions": None, "rows": None, "columns": [], "preview": [],
    "problem": "The user may not read cache 'payroll': Authorization failed [perm=CACHE_READ].",
}
failed = {
    "kind": "Unprocessable", "code": "ignite_sign_in", "errors": [],
    "detail": "Ignite at away.example.org:10800 does not let the portal in as the user of this connection.",
    "remedy": "Check the secrets that hold the user name and the password, then check the connection again.",
}
found = {"caches": [kittens, images, closed], "count": 3, "notes": []}
now = timezone.now()
same = {"namespace_id": sys.argv[1], "created_at": now, "changed_at": now, "asked_at": now, "ended_at": now}
DataConnection.objects.create(
    name="kittens", hosts="one.example.org,two.example.org:10801", tls=True, certificate="INDEX_PASSWORD",
    state=State.READY, found=found, found_at=now, **same,
)
DataConnection.objects.create(
    name="away", hosts="away.example.org", state=State.FAILED, problem=failed, **same,
)
"""


def _team(one: World) -> None:
    transport = one.client.transport
    team = transport.post("namespaces/", {"slug": "vision", "title": "Computer vision", "manager": "ada"})
    transport.post(f"namespaces/{team['id']}/members/", {"username": "bob", "role": "viewer"})
    keys = {"kind": "s3", "access_key": "AKIA0", "secret_key": "not-a-real-key"}
    transport.put(f"namespaces/{team['id']}/secrets/MEASUREMENTS/", keys)
    password = {"value": "not-a-real-password", "description": "For the private package index"}
    transport.put(f"namespaces/{team['id']}/secrets/INDEX_PASSWORD/", password)
    reference = f"registry.example:5000/ml/tensorflow@sha256:{'0a' * 32}"
    facts = {"python": "3.11", "tensorflow": "2.19.0", "gpus": True, "namespaces": ["vision"]}
    one.client.images.create("tensorflow-2.19", reference, description="With pandas and OpenCV", **facts)
    cluster = {"master": "spark://127.0.0.1:9", "driver_address": "127.0.0.1", "secret": "not-a-real-secret"}
    limits_of_it = {"most_executors": 8, "most_memory": 64 << 30, "most_cores_at_once": 40, "namespaces": ["vision"]}
    transport.post("spark-clusters/", {"name": "analytics", **cluster, **limits_of_it})
    one.ids["team"] = team["id"]
    one.portal.script(_CONNECTIONS, team["id"])
    _people(one, transport)
    service = transport.post(f"namespaces/{team['id']}/service-accounts/", {"name": "nightly", "role": "member"})
    one.ids["service"] = service["id"]
    hook = {"url": "https://ci.example.org/yardmaster?token=1", "events": ["job.failed"], "description": "Pipeline"}
    webhooks = f"namespaces/{team['id']}/webhooks/"
    one.ids["webhook"] = transport.post(webhooks, hook | {"is_active": False})["id"]
    chat = {"url": "https://hooks.slack.com/services/T0/B0/not-a-real-key", "format": "slack", "is_active": False}
    transport.post(webhooks, chat | {"events": ["job.succeeded", "job.failed"]})
    own = next(space for space in one.client.namespaces() if space.slug == "ada")
    limits = {"cpu": "4", "memory": "16Gi", "gpus": None, "storage": "20Mi", "running_jobs": 5}
    transport.put(f"namespaces/{own.id}/quota/", limits)
    one.client.token_create("notebook", ["read"])
    transport.post("priority-classes/", {"name": "urgent", "value": 100, "description": "Before a paper is due"})
    group = {"name": "research", "weight": 2, "guaranteed": {"cpu": 1}, "reason": "As agreed"}
    one.ids["share"] = transport.post("shares/", group)["id"]
    transport.post("shares/", {"namespace": "ada", "parent": "research", "reason": "As agreed"})
    _plans(one, transport)


def _plans(one: World, transport: Any) -> None:
    """Limits of the team for a while, presets of the launch form, and rules of retention."""
    ends = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT18:00}"
    change = {"namespaces": [one.ids["team"]], "changes": {"cpu": "8"}, "ends": ends, "reason": "The deadline"}
    transport.post("quotas/scheduled/", change)
    roles = {"ps": {"replicas": 1}, "worker": {"replicas": 2}}
    small = {"name": "Small", "description": "1 PS, 2 workers", "spec": {"strategy": "between_graph", "roles": roles}}
    one.ids["preset"] = transport.post("launch-presets/", small)["id"]
    roles = {"ps": {"replicas": 2, "cpu": 2}, "worker": {"replicas": 8, "cpu": 4, "memory": "8Gi"}}
    large = {"name": "Large", "description": "2 PS, 8 workers with 4 cores", "spec": small["spec"] | {"roles": roles}}
    transport.post("launch-presets/", large)
    rule = {"kind": "logs", "days": 90, "newest": 10, "tags": ["paper"], "reason": "The disk of the log store"}
    transport.put("retention/", rule)
    rule = {"kind": "files", "days": 365, "reason": "As agreed with the owners of the cluster"}
    one.ids["retention"] = transport.put("retention/", rule)["id"]
    transport.put("retention/", {"kind": "logs", "days": None, "namespace": one.ids["team"], "reason": "A paper"})


def _people(one: World, transport: Any) -> None:
    """An invitation, and a team that is being removed, or was."""
    people = transport.get("users/", search="bob")["results"]
    one.ids["bob"] = people[0]["id"]
    link = transport.post("invitations/", {"namespace": "vision", "role": "viewer", "uses": 10})["url"]
    one.ids["unsubscribe"] = one.portal.script(_UNSUBSCRIBE, "bob").splitlines()[-1]
    one.ids["invitation"] = link.rstrip("/").rpartition("/")[2]
    speech = transport.post("namespaces/", {"slug": "speech", "title": "Speech, which is over"})
    one.ids["removal"] = transport.post(f"namespaces/{speech['id']}/removal/", {"data": "keep"})["id"]


def _template(one: World, job_id: str) -> None:
    """A template of a job with parameters, a job that was launched from it, and a schedule of it."""
    spec = one.client.jobs.get(job_id).spec
    parameters = [
        {"name": "steps", "kind": "integer", "default": 20, "minimum": 1, "maximum": 10_000, "help": "Training steps"},
        {"name": "mode", "kind": "choice", "default": "usual", "choices": ["usual", "mirrored"]},
    ]
    template = one.client.templates.create(
        "digits every night", spec={**spec, "arguments": ["--steps={{steps}}"], "environment": {"MODE": "{{mode}}"}},
        description="The baseline, on the newest digits", latest=["inputs.0"], parameters=parameters,
    )  # fmt: skip
    one.portal.script(_REVISE, template.id)
    schedule = one.client.schedules.create(
        "nightly", template=template.id, cron="30 2 * * *", time_zone="Europe/Berlin", parameters={"steps": 5}
    )
    one.client.jobs.stop(one.client.schedules.run(schedule.id).id)
    one.ids |= {"template": template.id, "schedule": schedule.id}


def training(one: World, name: str, *arguments: str, **changes: Any) -> dict[str, Any]:
    """The digits with 1 parameter server and 2 workers."""
    return {
        "name": name, "strategy": "between_graph", "code": one.ids["code-version"], "entry_point": "between_graph.py",
        "arguments": list(arguments), "inputs": [{"dataset_version": one.ids["dataset-version"]}], "reclaim_delay": 1,
        "environment": {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"}, "grace_period": 5,
        "roles": {"ps": {"replicas": 1, **TASK}, "worker": {"replicas": 2, **TASK}}, **changes,
    }  # fmt: skip


def script(one: World, name: str, entry_point: str, **changes: Any) -> dict[str, Any]:
    """One small task that runs a script of the code without any flag."""
    return {
        "name": name, "strategy": "single", "roles": {"worker": dict(SMALL)}, "code": one.ids["code-version"],
        "entry_point": entry_point, "paths": {"data_flag": "", "log_flag": ""}, "retries": 0, "grace_period": 5,
        "reclaim_delay": 1, **changes,
    }  # fmt: skip


def _sweep(one: World) -> None:
    """A learning rate and a momentum, of which the highest diverges."""
    code = _latest(one.client.code.put("valley", [VALLEY]))
    spec = {
        "name": "valley", "strategy": "single", "roles": {"worker": dict(SMALL)}, "code": code,
        "entry_point": "train.py", "reclaim_delay": 1, "grace_period": 5,
    }  # fmt: skip
    plan = {
        "parameters": {"lr": "0.01, 0.05, 0.1", "momentum": "0.0, 0.5"}, "metric": {"tag": "loss"}, "parallel": 3,
        "early_stop": {"rule": "median", "min_steps": 1_000},
    }  # fmt: skip
    made = one.client.sweeps.create(spec, plan)
    ended = one.client.sweeps.wait(made.id, timeout=120)
    assert ended.best is not None, ended
    one.ids |= {"sweep": made.id, "trial": str(ended.best["job"])}


def _jobs(one: World) -> None:
    _sweep(one)
    jobs = one.client.jobs
    trained = jobs.launch(training(one, "digits", "--steps=200"))
    failed = jobs.launch(script(one, "all at once", "eater.py"))
    logged = jobs.launch(script(one, "motley log", "motley.py", model={"name": "digits"}))
    assert jobs.wait(trained.id, timeout=180).phase == "SUCCEEDED"
    assert jobs.wait(failed.id, timeout=90).phase == "FAILED"
    jobs.change(
        trained.id, note="The baseline of the paper.\nCompare with the mirrored one.", tags=["baseline", "paper"]
    )
    jobs.change(failed.id, tags=["paper"])
    jobs.pin(trained.id)
    _template(one, trained.id)
    jobs.wait(logged.id, timeout=90)
    executed = jobs.launch(script(one, "a notebook", "book.ipynb"))
    assert jobs.wait(executed.id, timeout=90).phase == "SUCCEEDED"
    runs = jobs.launch(training(one, "digits, slowly", "--steps=100000", "--step_sleep=1", "--log_every=1"))
    until(lambda: _step(jobs.get(runs.id)) > 8, 120, "the first steps")
    roles = {"worker": {"cpu": 1.5, "memory": "1Gi"}}
    waits = jobs.launch(script(one, "waits for its turn", "motley.py", roles=roles))
    never = jobs.launch(
        script(one, "larger than the engine", "motley.py", roles={"worker": {"cpu": 500, "memory": "1Gi"}}),
        accept_never_fits=True,
    )
    until(lambda: jobs.get(waits.id).phase == "QUEUED" and jobs.why(waits.id), 30, "a queued job")
    until(lambda: jobs.get(trained.id).model and jobs.get(logged.id).model, 60, "both versions of the model")
    one.ids |= {
        "trained": trained.id,
        "failed": failed.id,
        "logged": logged.id,
        "executed": executed.id,
        "running": runs.id,
        "waiting": waits.id,
        "never": never.id,
    }
    version = one.client.models.version(jobs.get(trained.id).model)
    one.client.transport.post(f"model-versions/{version.id}/stage/", {"stage": "production", "note": "the best so far"})
    until(lambda: one.client.models.version(version.id).contents, 30, "what the model says of itself")
    one.ids["model"], one.ids["model-version"] = version.model, version.id
    _sessions(one)


def _sessions(one: World) -> None:
    """A TensorBoard of a job and a Jupyter, both stopped."""
    board = one.client.sessions.start("tensorboard", jobs=[one.ids["trained"]], accept_never_fits=True)
    jupyter = one.client.sessions.start("jupyter", accept_never_fits=True)
    for session in (board, jupyter):
        one.client.sessions.stop(session.id)
    until(lambda: all(one.client.sessions.get(two.id).state == "stopped" for two in (board, jupyter)), 60, "their end")
    one.ids |= {"board": board.id, "jupyter": jupyter.id}


def _step(job: Job) -> int:
    return int((job.progress or {}).get("step") or 0)
