"""A pipeline as the docs have it, run for real: a service account's token launches a job over the command line and the
API, waits for it and reads its log; and what becomes of both when the account or the token ends."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.real.portal import ROOT
from tests.real.scene import Scene, scene, until
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
JOB = "name: nightly\nstrategy: single\nroles: {worker: {cpu: 0.1, memory: 256Mi}}\nentry_point: train.py\n" + (
    "paths: {data_flag: '', log_flag: ''}\nretries: 0\n"
)


@dataclass
class Pipeline:
    """The team, its service account with a token, and what the manager does with them."""

    scene: Scene
    admin: httpx2.Client
    team: str
    account: dict[str, Any]
    token: str
    token_id: str

    def as_program(self) -> httpx2.Client:
        return http(self.scene.portal.url, self.token)

    def another_token(self) -> Pipeline:
        made = token_made(self.admin, self.team, self.account["id"])
        return Pipeline(self.scene, self.admin, self.team, self.account, made["token"], made["id"])


def http(url: str, token: str) -> httpx2.Client:
    return httpx2.Client(base_url=f"{url}/api/v1/", headers={"Authorization": f"Bearer {token}"}, timeout=60)


def token_made(admin: httpx2.Client, team: str, account: str) -> dict[str, Any]:
    wish = {"name": "ci", "scopes": ["read", "jobs", "data"], "expires_in": 3600}
    made = admin.post(f"namespaces/{team}/service-accounts/{account}/tokens/", json=wish)
    assert made.status_code == 201, made.text
    return made.json()


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with scene() as one, http(one.portal.url, one.token) as admin:
        teams = [admin.post("namespaces/", json={"slug": slug, "manager": "admin"}) for slug in ("vision", "speech")]
        assert [team.status_code for team in teams] == [201, 201], teams[0].text
        team = teams[0].json()["id"]
        account = admin.post(f"namespaces/{team}/service-accounts/", json={"name": "ci", "role": "member"})
        assert account.status_code == 201, account.text
        made = token_made(admin, team, account.json()["id"])
        yield Pipeline(one, admin, team, account.json(), made["token"], made["id"])


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a pipeline's image has: Python and pip. What the client needs is there, instead of a package index."""
    folder = tmp_path_factory.mktemp("image")
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "beneath.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def recipe() -> list[str]:
    """The lines of the script in the docs."""
    block = re.search(r"```yaml\ntrain:\n.*?script:\n(.*?)```", (ROOT / "docs/webhooks.md").read_text(), re.DOTALL)
    assert block is not None
    return [line.strip().removeprefix("- ") for line in block[1].splitlines()]


def run_recipe(pipeline: Pipeline, runner: Path, folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """The whole recipe in a fresh folder with `job.yaml` and `training/`, as a step of a pipeline runs it."""
    (folder / "training").mkdir()
    (folder / "training" / "train.py").write_text(script)
    (folder / "job.yaml").write_text(JOB)
    told = {
        "PATH": f"{runner / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "PIP_NO_INDEX": "1",
        "YARDMASTER_URL": pipeline.scene.portal.url, "YARDMASTER_TOKEN": pipeline.token,
    }  # fmt: skip
    lines = "\n".join(["set -e", *recipe()])
    return subprocess.run(["bash", "-c", lines], cwd=folder, env=told, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_the_recipe_of_the_docs_launches_waits_and_succeeds(pipeline: Pipeline, runner: Path, tmp_path: Path):
    done = run_recipe(pipeline, runner, tmp_path, "print('trained by a pipeline', flush=True)\n")
    assert done.returncode == 0, done.stdout + done.stderr
    with Yardmaster(pipeline.scene.portal.url, pipeline.token) as program:
        job = next(iter(program.jobs.list()))
        assert (job.phase, job.name, job.owner) == ("SUCCEEDED", "nightly", pipeline.account["username"])
        assert job.namespace == pipeline.team
        assert "trained by a pipeline" in [one.text for one in program.jobs.lines(job.id, role="worker", index=0)]


def test_a_job_that_fails_fails_the_step(pipeline: Pipeline, runner: Path, tmp_path: Path):
    assert run_recipe(pipeline, runner, tmp_path, "raise SystemExit(3)\n").returncode != 0


def test_another_namespace_is_refused(pipeline: Pipeline):
    with pipeline.as_program() as program:
        assert program.get("namespaces/").json()["results"][0]["slug"] == "vision"
        for namespace in ("speech", "admin"):
            wish = {"namespace": namespace, "engine": "local", "spec": {"name": "x"}}
            assert program.post("jobs/", json=wish).status_code == 404, namespace


def running_job(pipeline: Pipeline, name: str) -> str:
    """A job that the program has launched and that runs until it is stopped."""
    with Yardmaster(pipeline.scene.portal.url, pipeline.token) as program:
        job = program.jobs.launch({**pipeline.scene.spec(_code(program, pipeline.scene)), "name": name})
    until(lambda: _phase(pipeline, job.id) == "RUNNING", what="a running job")
    return job.id


def _code(program: Yardmaster, scene: Scene) -> str:
    folder = scene.portal.home / "of-the-program"
    folder.mkdir(exist_ok=True)
    (folder / "main.py").write_text("import time\nprint('runs', flush=True)\ntime.sleep(600)\n")
    latest = program.code.put("waiting", [folder]).latest
    assert latest is not None
    return latest.id


def _phase(pipeline: Pipeline, job: str) -> str:
    return str(pipeline.admin.get(f"jobs/{job}/").json()["phase"])


def test_a_revoked_token_is_refused_at_once_and_the_job_runs_on(pipeline: Pipeline):
    other = pipeline.another_token()
    job = running_job(other, "revoked")
    with other.as_program() as program:
        assert program.get(f"jobs/{job}/").status_code == 200
        tokens = f"namespaces/{pipeline.team}/service-accounts/{pipeline.account['id']}/tokens/"
        assert pipeline.admin.delete(f"{tokens}{other.token_id}/").status_code == 204
        assert program.get(f"jobs/{job}/").status_code == 401
        assert program.post("jobs/", json={"spec": {}}).status_code == 401
    assert _phase(pipeline, job) == "RUNNING"
    with pipeline.as_program() as program:
        assert program.post(f"jobs/{job}/stop/").status_code == 200, "the account's other token reaches it"
    until(lambda: _phase(pipeline, job) == "STOPPED", what="the end of the job")


def test_a_deleted_account_is_refused_at_once_and_its_job_runs_on(pipeline: Pipeline):
    accounts = f"namespaces/{pipeline.team}/service-accounts/"
    made = pipeline.admin.post(accounts, json={"name": "gone", "role": "member"}).json()
    token = token_made(pipeline.admin, pipeline.team, made["id"])
    other = Pipeline(pipeline.scene, pipeline.admin, pipeline.team, made, token["token"], token["id"])
    job = running_job(other, "deleted")
    with other.as_program() as program:
        assert pipeline.admin.delete(f"{accounts}{made['id']}/").status_code == 204
        assert program.get("me/").status_code == 401
        assert program.get(f"jobs/{job}/logs/").status_code == 401
    assert _phase(pipeline, job) == "RUNNING"
    assert pipeline.admin.post(f"jobs/{job}/stop/").status_code == 200
    until(lambda: _phase(pipeline, job) == "STOPPED", what="the end of the job")
