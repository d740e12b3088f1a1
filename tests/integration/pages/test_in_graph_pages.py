"""TensorFlow servers only, on pages: how they are chosen and launched, and how they are reached while they are up."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from django.test import Client

from apps.jobs.models import Job
from apps.jobs.services import job_stop
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.test_in_graph_job import SERVERS
from yardmaster_client.jobfile import job_from_text

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def signed(client, ada, world) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def data() -> dict[str, str]:
    return {
        "form": "f1", "name": "servers", "strategy": "in_graph", "roles-worker-replicas": "2",
        "roles-ps-replicas": "1", "roles-ps-cpu": "1", "max_runtime": "2h",
        "inputs-TOTAL_FORMS": "0", "inputs-INITIAL_FORMS": "0", "environment-TOTAL_FORMS": "0",
        "environment-INITIAL_FORMS": "0",
    }  # fmt: skip


def running(world, ada, **changes) -> Job:
    job = world.launch(ada, **SERVERS, **changes)
    world.until_running(job)
    return world.again(job)


def page_of(client: Client, job: Job, **headers: str) -> str:
    response = client.get(f"/jobs/{job.pk}/", headers=headers)
    assert response.status_code == 200
    return response.content.decode()


class TestLaunch:
    def test_the_preset_asks_for_no_script(self, signed, ada, world):
        code = world.code_version(ada)
        page = signed.get("/jobs/launch/?preset=in_graph").content.decode()
        assert set(re.findall(r'name="roles-(\w+)-replicas"', page)) == {"ps", "worker", "chief"}
        assert "launch-scripts" not in page
        assert "Name and data" in page
        assert "they serve until they are stopped, and your own program drives them" in page
        assert "never: it runs until it is stopped" in page
        # What another strategy would need is kept out of sight.
        assert f'<input type="hidden" name="code" value="{code.pk}"' in page

    def test_file_and_command_say_nothing_of_code_either(self, signed, ada, world):
        world.code_version(ada)
        page = html.unescape(signed.get("/jobs/launch/?preset=in_graph").content.decode())
        command = page[page.index("yardmaster jobs launch /dev/stdin") :]
        text = command[command.index("\n") + 1 : command.index("\nJOB")]
        assert "strategy: in_graph" in text
        assert "code:" not in text
        assert "entry_point:" not in text
        assert "success:" not in text

    def test_a_plain_post_launches_servers(self, signed, world, data):
        response = signed.post("/jobs/launch/", data | {"arguments": "--steps=5", "entry_point": "x.py", "code": "?"})
        job = Job.objects.get()
        assert response.headers["Location"] == f"/jobs/{job.pk}/"
        assert (job.spec["code"], job.spec["entry_point"], job.spec["arguments"]) == (None, "", [])
        assert job.spec["max_runtime"] == 7200

    def test_to_choose_it_and_choose_another_again_loses_nothing(self, signed, ada, world, data):
        code = world.code_version(ada)
        typed = {
            "name": "kept", "strategy": "between_graph", "code": str(code.pk), "entry_point": "mine.py",
            "arguments": "--a\r\n--b", "paths-data_flag": "--mine", "paths-log_env": "",
            "roles-worker-replicas": "3", "roles-ps-replicas": "1",
        }  # fmt: skip
        away = signed.post("/jobs/launch/", typed | {"strategy": "in_graph", "take": "preset"}).content.decode()
        form = dict(re.findall(r'<input[^>]* name="([\w-]+)"(?: value="([^"]*)")?', away))
        back = signed.post("/jobs/launch/", form | {"strategy": "between_graph", "take": "preset"}).content.decode()
        assert f'<option value="{code.pk}" selected>' in back
        for name, value in (("entry_point", "mine.py"), ("paths-data_flag", "--mine"), ("paths-log_env", "")):
            assert re.search(rf'name="{name}"' + (f' value="{value}"' if value else " class="), back), name
        assert "--a\n--b</textarea>" in back.replace("\r\n", "\n")
        assert 'name="roles-worker-replicas" value="3"' in back

    def test_servers_without_an_end_are_warned_of_and_those_with_one_are_not(self, signed, world, data):
        said = "use quota until they are stopped"
        assert said not in signed.post("/jobs/launch/preview/", data).content.decode()
        assert said in signed.post("/jobs/launch/preview/", data | {"max_runtime": ""}).content.decode()

    def test_such_a_job_can_be_cloned(self, signed, ada, world):
        job = world.launch(ada, **SERVERS, name="older")
        page = signed.get(f"/jobs/launch/?from={job.pk}").content.decode()
        assert 'value="in_graph" id="preset-in_graph" checked' in page


class TestJobPage:
    def test_while_it_runs_it_says_where_to_connect_and_from_where(self, signed, ada, world):
        job = running(world, ada)
        page = page_of(signed, job)
        assert f"<code>grpc://worker-0.{job.key.name}:2222</code></pre><button" in page
        assert "From nowhere: this engine runs nothing." in page
        assert f'href="/api/v1/jobs/{job.pk}/notebook/" download' in page
        assert "/job:ps/task:0" in page
        assert "All 3 servers" in page
        assert "there is no time limit" in page
        assert "none (in-graph: your own program connects to the servers)" in page
        assert "2 workers, 1 parameter server, in-graph" in html.unescape(page)

    def test_its_parts_come_and_go_by_themselves(self, signed, ada, world):
        job = running(world, ada, max_runtime=3600)
        parts = page_of(signed, job, **{"HX-Request": "true"})
        assert '<div id="job-servers" hx-swap-oob="true">' in parts
        assert "grpc://" in parts
        assert "there is no time limit" not in parts
        job_stop(user=ada, job=job)
        parts = page_of(signed, job, **{"HX-Request": "true"})
        assert '<div id="job-servers" hx-swap-oob="true">' in parts
        assert "grpc://" not in parts

    def test_of_many_servers_the_first_are_shown(self, signed, ada, world):
        roles = {"worker": {"replicas": 55, "cpu": 0.1}, "ps": {"replicas": 1, "cpu": 0.1}}
        page = page_of(signed, running(world, ada, roles=roles))
        assert "All 56 servers" in page
        assert "6 more" in page
        assert "/job:worker/task:49<" in page
        assert "/job:worker/task:50<" not in page

    def test_a_job_with_a_script_has_no_such_part(self, signed, ada, world):
        job = world.launch(ada)
        world.until_running(job)
        assert "job-servers" not in page_of(signed, world.again(job))

    def test_the_job_as_a_file_makes_the_same_job_again(self, signed, ada, world):
        job = running(world, ada)
        page = html.unescape(page_of(signed, job))
        text = re.search(r"<pre tabindex=\"0\"><code>(name: .*?)</code></pre>", page, re.DOTALL)
        assert text is not None
        file = job_from_text(text[1], Path("job.yaml"))
        assert "code" not in file.spec
        assert file.spec["strategy"] == "in_graph"

    def test_compared_with_a_job_that_has_code(self, signed, ada, world):
        one, other = running(world, ada), world.launch(ada)
        response = signed.get(f"/jobs/compare/?job={one.pk}&job={other.pk}")
        assert response.status_code == 200
        assert ">None<" not in response.content.decode()
