"""Code from Git over the API: a real Git host, and the worker's function in the place of the worker."""

from __future__ import annotations

import uuid

import pytest

from apps.code import worker
from apps.uploads.models import StorageAccount
from tests.real.git_server import git, git_host
from yardmaster.git.hosts import GitHost
from yardmaster.git.limits import Limits

PATH = "/api/v1/code-imports/"
FILES = {"train.py": "print('hi')\n", "examples/mnist/train.py": "print('mnist')\n", "examples/mnist/data.csv": "1,2\n"}


@pytest.fixture
def host(tmp_path, settings):
    with git_host(tmp_path / "repositories") as found:
        settings.YARDMASTER_GIT_HOSTS = [GitHost(found.origin, is_internal=True)]
        settings.YARDMASTER_GIT_LIMITS = Limits(most_bytes=8 << 20, seconds=60, most_files=500)
        yield found


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def ask(client, address, **more):
    answer = client.post(PATH, {"address": address, **more})
    assert answer.status_code == 202, answer.json()
    return answer.json()["id"]


def fetched(client, address, **more):
    """The import when the worker has looked at it once."""
    import_id = ask(client, address, **more)
    worker.code_import(uuid.UUID(import_id))
    return client.get(f"{PATH}{import_id}/").json()


def paths_of(client, version):
    rows = client.get(f"/api/v1/code-versions/{version}/files/").json()["results"]
    return [one["path"] for one in rows]


def held():
    """Bytes and files that all namespaces hold."""
    return [(one.used, one.reserved, one.files) for one in StorageAccount.objects.all() if one.used or one.reserved]


def test_a_repository_becomes_code(client, host):
    folder = host.repository("lab/digits", FILES)
    commit = git(folder, "rev-parse", "HEAD")
    found = fetched(client, host.address("lab/digits"))
    assert (found["state"], found["commit"], found["name"], found["is_new"]) == ("ready", commit, "digits", True)
    assert paths_of(client, found["code_version"]) == sorted(FILES)
    version = client.get(f"/api/v1/code-versions/{found['code_version']}/").json()
    assert version["git"] == {
        "repository": f"{host.origin}/lab/digits", "ref": "", "commit": commit, "folder": ""
    }  # fmt: skip
    used = sum(map(len, FILES.values()))
    assert held() == [(used, 0, len(FILES))]
