"""Secrets in a running portal: a job has them, and no file, row, log or answer for people does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.real.files import content_of, files_below

VALUE = "hunter2-hunter2-hunter2"
PRINTS = """
import os
print("the value is", os.environ["TOKEN"])
print(open(os.environ["SECRETS_DIR"] + "/key").read())
assert len(os.environ["TOKEN"]) == 23
raise SystemExit("failed with " + os.environ["TOKEN"])
"""


@pytest.fixture
def secret(attacked) -> str:
    client = attacked.client
    namespace = next(one.id for one in client.namespaces() if one.slug == "admin")
    client.secret_set(namespace, "TOKEN", {"value": VALUE})
    return namespace


def test_a_value_that_a_job_prints_is_nowhere_in_the_portals_home(attacked, secret):
    code = attacked.put_code({"main.py": PRINTS}, "prints-secrets")
    secrets = [{"name": "TOKEN", "env": "TOKEN"}, {"name": "TOKEN", "file": "key"}]
    job = attacked.client.jobs.launch(attacked.spec(code, secrets=secrets, retries=0))
    job = attacked.client.jobs.wait(job.id, timeout=90)
    lines = [line.text for line in attacked.client.jobs.lines(job.id, role="worker")]
    assert "the value is [secret TOKEN]" in lines
    assert "[secret TOKEN]" in lines
    assert VALUE not in job.message
    files = list(files_below(attacked.portal.home))
    assert len(files) > 10
    assert [path for path in files if VALUE.encode() in content_of(path)] == []


def test_another_tenant_can_neither_see_nor_use_nor_replace_it(attacked, secret, tenant):
    mallory = tenant("mallory")
    address = f"/api/v1/namespaces/{secret}/secrets/"
    assert mallory.get(address).status_code == 404
    assert mallory.put(f"{address}TOKEN/", json={"value": "theirs"}).status_code == 404
    assert mallory.delete(f"{address}TOKEN/").status_code == 404
    code = attacked.put_code({"main.py": "print(1)\n"}, "not-mallorys")
    spec = attacked.spec(code, secrets=[{"name": "TOKEN", "env": "TOKEN"}])
    check = mallory.post("/api/v1/jobs/check/", json={"spec": spec})
    assert "unknown_secret" in check.text
    assert VALUE not in check.text


def test_the_command_line_takes_a_value_from_a_pipe_and_shows_none(attacked):
    def yardmaster(*words: str, typed: str = "") -> str:
        environment = os.environ | {"YARDMASTER_URL": attacked.portal.url, "YARDMASTER_TOKEN": attacked.token}
        command = [sys.executable, "-m", "yardmaster_client", "secrets", *words]
        done = subprocess.run(command, input=typed, env=environment, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert VALUE not in yardmaster("set", "PIPED", typed=f"{VALUE}\n")
    yardmaster("set", "KEYS", "--bucket-keys", typed=f"AKIA0\n{VALUE}\n")
    listed = yardmaster("list", "--json")
    assert '"PIPED"' in listed
    assert f'"size": {len(VALUE)}' in listed
    assert VALUE not in listed
    yardmaster("delete", "PIPED", "--yes")
    assert "PIPED" not in yardmaster("list")
