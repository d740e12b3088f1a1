"""The API that turns a TFJob into a job file, and a job into manifests for any cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.images.models import Image
from apps.jobs.launch.job_file import LONGEST_FILE
from apps.jobs.models import Job
from tests.fakes.kubernetes_api import KubernetesApi
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster_client.jobfile import job_from_text

JOBS = "/api/v1/jobs/"
_NAMED = Path("job.yaml")
TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - {name: tensorflow, image: "team/mnist:1", command: [python, /opt/train.py, "--lr=0.1"]}
"""
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def me(world, ada, signed_in):
    return signed_in(ada)


def imported(client, text: str):
    return client.post(f"{JOBS}import/", {"text": text})


def test_a_tfjob_becomes_a_job_file_and_nothing_is_created(me):
    answer = imported(me, TFJOB + "---\nkind: Service\nmetadata: {name: side}\n")
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert found["spec"] == job_from_text(found["job_file"], _NAMED).spec
    assert found["spec"]["roles"] == {"worker": {"replicas": 2}}
    assert found["is_ready"] is False
    assert {one["kind"] for one in found["notes"]} == {"to_do", "changed", "left_out", "taken"}
    assert any("Service side" in one["message"] for one in found["notes"])
    assert not Job.objects.exists()


def test_an_image_of_the_catalogue_is_taken_where_an_engine_runs_images(me, ada, monkeypatch):
    now, pinned = timezone.now(), f"registry.example/team/mnist:1@sha256:{'0' * 64}"
    row = Image.objects.create(name="digits", reference=pinned, created_at=now, changed_at=now)
    text = TFJOB.replace("team/mnist:1", "registry.example/team/mnist:1")
    assert "image" not in imported(me, text).json()["spec"], "no engine of this portal runs it"
    monkeypatch.setattr("apps.jobs.launch.importing.engines_with_images", lambda: ["kubernetes"])
    found = imported(me, text).json()
    assert found["spec"]["image"] == "digits"
    assert "image: digits" in found["job_file"]
    assert [one["kind"] for one in found["notes"] if one["field"] == "image"] == ["taken"]
    Image.objects.filter(pk=row.pk).update(everyone=False)
    assert "image" not in imported(me, text).json()["spec"], "it is for others"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [", "bad_value"),
        ("kind: Pod", "not_a_tfjob"),
        (TFJOB.replace("/v1", "/v1beta1"), "old_version"),
        (TFJOB + "---" + TFJOB, "several_tfjobs"),
        (LAUGHS, "bad_value"),
        ("a: &a [*a]", "bad_value"),
        ("!!python/object/apply:os.system [id]", "bad_value"),
        ("[" * 200_000, "bad_value too_hard"),
        ("{a: " * 3_000, "bad_value too_hard"),
        ("- &a {<<: *a}", "bad_value"),
        (TFJOB.replace("[python,", "[python, &a '" + "x" * 100_000 + "'" + ", *a" * 900 + ","), "bad_value"),
        (TFJOB.replace("[python,", "[python, &a '" + "x" * 1_500 + "'" + ", *a" * 200 + ","), "too_large"),
    ],
)
def test_hostile_and_mistaken_texts_are_refused_with_a_remedy(me, text: str, code: str):
    answer = imported(me, text)
    assert answer.status_code == 422, answer.json()
    (problem,) = answer.json()["errors"]
    assert problem["code"] in code.split()
    assert problem["remedy"]


def test_a_text_has_a_bound_and_a_stranger_no_answer(me, client):
    assert imported(me, "#" * (LONGEST_FILE + 1)).status_code == 400
    assert client.post(f"{JOBS}import/", {"text": TFJOB}).status_code in (401, 403)


def test_a_job_is_exported_with_its_code_and_without_the_portal(world, me, ada):
    code = world.code_version(ada, {"train.py": "print(1)\n", "lib/a.py": "x = 1\n", "requirements.txt": "pandas\n"})
    job = world.launch(ada, code=str(code.pk), name="My: job")
    answer = me.get(f"{JOBS}{job.pk}/export/", {"image": "team/tf:2", "claim": "results"})
    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="job-{job.pk}.yaml"'
    text = answer.content.decode()
    objects = list(yaml.safe_load_all(text))
    assert text.startswith("# The job My: job")
    assert "&id" not in text
    (code_map,) = [one for one in objects if one["metadata"]["name"] == "my-job-code"]
    assert code_map["data"] == {"train.py": "print(1)\n", "lib__a.py": "x = 1\n", "requirements.txt": "pandas\n"}
    images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in objects if one["kind"] == "Job"}
    assert images == {"team/tf:2"}
    assert AuditEvent.objects.filter(action="code.download").count() == 1, "the code leaves the portal with it"
    assert "YARDMASTER_TOKEN" not in text
    assert "YARDMASTER_URL" not in text


def test_the_image_is_that_of_an_engine_which_has_one(world, me, ada, monkeypatch):
    api = KubernetesApi()
    engine = KubernetesEngine(tasks={"image": "tasks:7", "gpu_resource": "amd.com/gpu"}, api=Api(connect_to(api.url)))
    monkeypatch.setattr("apps.jobs.exporting.engine_named", lambda name: engine)
    roles = {"worker": {"replicas": 2, "gpus": 1}, "ps": {"replicas": 1}}
    job = world.launch(ada, roles=roles)
    text = me.get(f"{JOBS}{job.pk}/export/").content.decode()
    engine.close()
    api.close()
    assert "image: tasks:7" in text
    assert "amd.com/gpu: '1'" in text


def test_texts_that_look_like_numbers_stay_texts(world, me, ada):
    looks = ["1e-3", "1E5", "+.5", "0o17", "12", "1_000", "0x1F", "-1e+3", "1.5e3", "v1.2", "1e-3x"]
    job = world.launch(ada, arguments=looks)
    text = me.get(f"{JOBS}{job.pk}/export/").content.decode()
    assert all(f"- '{one}'\n" in text for one in looks[:-2])
    assert all(f"- {one}\n" in text for one in looks[-2:])


def test_an_export_has_a_bound_whatever_its_variables_stand_for(world, me, ada):
    variables = {"A": "x" * 20_000} | {f"B{number}": "$A$A$A" for number in range(14)}
    roles: dict[str, dict[str, int]] = {"chief": {}, "worker": {}, "ps": {}}
    texts = {"environment": variables, "arguments": ["$A$A"] * 20}
    spec = world.spec_json(ada, strategy="parameter_server", roles=roles, **texts)
    refused = me.post(f"{JOBS}export/", {"spec": spec})
    assert refused.status_code == 422
    assert [one["code"] for one in refused.json()["errors"]] == ["too_large"], refused.json()


def test_only_who_may_see_a_job_exports_it_and_mistakes_are_named(world, me, ada, bob, signed_in):
    job = world.launch(ada)
    address = f"{JOBS}{job.pk}/export/"
    refused = me.get(address, {"image": "a b"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "image"
    assert me.get(address, {"colour": "red"}).status_code == 400
    assert signed_in(bob).get(address).status_code == 404


def test_a_job_is_exported_before_its_launch(world, me, ada):
    answer = me.post(f"{JOBS}export/", {"spec": world.spec_json(ada), "image": "i:1"})
    assert answer.status_code == 200, answer.json()
    assert "image: i:1" in answer.json()["manifests"]
    assert not Job.objects.exists()
    refused = me.post(f"{JOBS}export/", {"spec": world.spec_json(ada, code="0193e5a4-0000-7000-8000-000000000001")})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["code"] == "unknown_version"
