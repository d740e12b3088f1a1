"""What an engine makes of a job: shown, downloaded and asked for, before the launch and after it."""

from __future__ import annotations

import pytest
import yaml

from apps.jobs.engines.manifests import Manifests
from apps.jobs.models import Job
from tests.fakes.kubernetes_api import KubernetesApi
from tests.integration.jobs.conftest import engine_settings, stores, world
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db
HOSTILE = "'\"\n- {{ x }} $(HOME) \u2028 </pre><script>alert(1)</script> 🚂: &a *b"


@pytest.fixture
def on_kubernetes(monkeypatch):
    """Jobs of these tests are shown as the Kubernetes engine would make them."""
    api = KubernetesApi()
    engine = KubernetesEngine(tasks={"image": "tasks:1"}, api=Api(connect_to(api.url)))
    monkeypatch.setattr("apps.jobs.engines.manifests.engine_named", lambda name: engine)
    yield
    engine.close()
    api.close()


def kinds(text: str) -> list[str]:
    return [one["kind"] for one in yaml.safe_load_all(text)]


EXPECTED = ["ConfigMap", "NetworkPolicy", "Secret", "StatefulSet", "Job"]


def test_the_page_of_a_job_leads_to_its_manifests_and_to_their_file(world, ada, web, on_kubernetes):
    job = world.launch(ada)
    assert f'href="/jobs/{job.pk}/manifests/"' in web.get(f"/jobs/{job.pk}/").content.decode()
    page = web.get(f"/jobs/{job.pk}/manifests/").content.decode()
    assert "5 objects on" in page
    assert "kind: StatefulSet" in page
    file = web.get(f"/api/v1/jobs/{job.pk}/manifests.yaml")
    assert file["Content-Disposition"] == f'attachment; filename="job-{job.pk}.yaml"'
    assert sorted(kinds(file.content.decode())) == sorted(EXPECTED)


def test_the_api_gives_them_before_a_launch_and_makes_nothing(world, ada, api, on_kubernetes):
    answer = api.post("/api/v1/jobs/manifests/", {"spec": world.spec_json(ada)}, format="json")
    assert answer.status_code == 200, answer.json()
    assert sorted(one["kind"] for one in answer.json()["manifests"]) == sorted(EXPECTED)
    assert not Job.objects.exists()
    refused = api.post("/api/v1/jobs/manifests/", {"spec": world.spec_json(ada, retries=-1)}, format="json")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "retries"


def test_they_say_whose_job_it_is(world, ada, web, api, on_kubernetes):
    job = world.launch(ada)
    file = web.get(f"/api/v1/jobs/{job.pk}/manifests.yaml").content.decode()
    asked = api.post("/api/v1/jobs/manifests/", {"spec": world.spec_json(ada)}, format="json").json()["manifests"]
    for made in (list(yaml.safe_load_all(file)), asked):
        pods = [one["spec"]["template"] for one in made if "template" in one.get("spec", {})]
        assert [one["metadata"]["labels"]["yardmaster/user"] for one in pods] == [str(ada.pk)] * 2


def test_the_launch_page_downloads_them_or_says_what_is_wrong(world, ada, web, on_kubernetes):
    code = world.code_version(ada, {"train.py": "print(1)\n"})
    form = {
        "name": "digits", "strategy": "between_graph", "code": str(code.pk), "entry_point": "train.py",
        "roles-worker-replicas": "2", "roles-ps-replicas": "1",
        "inputs-TOTAL_FORMS": "0", "inputs-INITIAL_FORMS": "0", "environment-TOTAL_FORMS": "0",
        "environment-INITIAL_FORMS": "0",
    }  # fmt: skip
    file = web.post("/jobs/launch/manifests/", form)
    assert file["Content-Disposition"] == 'attachment; filename="job.yaml"'
    assert sorted(kinds(file.content.decode())) == sorted(EXPECTED)
    wrong = web.post("/jobs/launch/manifests/", form | {"entry_point": ""})
    assert wrong.status_code == 422
    assert "<textarea" in wrong.content.decode()
    assert not Job.objects.exists()


def test_of_a_foreign_job_nothing_is_told(world, ada, bob, web):
    job = world.launch(bob)
    for address in (f"/jobs/{job.pk}/manifests/", f"/api/v1/jobs/{job.pk}/manifests.yaml"):
        assert web.get(address).status_code == 404


def test_whatever_users_write_is_one_value_when_it_is_read_again():
    text = Manifests("x", [{"kind": "A", "data": {HOSTILE: HOSTILE}}, {"kind": "B"}]).as_yaml
    assert list(yaml.safe_load_all(text)) == [{"kind": "A", "data": {HOSTILE: HOSTILE}}, {"kind": "B"}]
