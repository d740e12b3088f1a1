"""Code from Git over the API: a real Git host, and the worker's function in the place of the worker."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.code import worker
from apps.code.git_imports import MOST_OPEN
from apps.code.models import CodeImport, CodeVersion, ImportState
from apps.namespaces.models import Membership, Quota, Role
from apps.secrets.services import secret_set
from apps.uploads.models import State as UploadState
from apps.uploads.models import StorageAccount, Upload
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


def test_what_the_namespace_has_is_not_fetched_again_whoever_asks_and_however_it_is_called(client, host, settings):
    folder = host.repository("lab/digits", FILES)
    first = fetched(client, host.address("lab/digits"))
    git(folder, "tag", "v1")
    again = fetched(client, f"{host.address('lab/digits')}@v1", name="other")
    assert (again["state"], again["code_version"], again["is_new"]) == ("ready", first["code_version"], False)
    assert CodeVersion.objects.count() == 1

    inner = fetched(client, f"{host.address('lab/digits')}#subdirectory=examples/mnist", name="other")
    assert (inner["name"], paths_of(client, inner["code_version"])) == ("other", ["data.csv", "train.py"])

    commit = host.commit(folder, {"train.py": "print('ho')\n"})
    later = fetched(client, host.address("lab/digits"))
    version = client.get(f"/api/v1/code-versions/{later['code_version']}/").json()
    assert (version["number"], version["changed"], version["git"]["commit"]) == (2, 1, commit)


def test_a_version_that_was_deleted_is_fetched_again(client, host):
    host.repository("lab/digits", FILES)
    first = fetched(client, host.address("lab/digits"))
    assert client.delete(f"/api/v1/code-versions/{first['code_version']}/").status_code == 204
    again = fetched(client, host.address("lab/digits"))
    assert (again["state"], again["is_new"]) == ("ready", True)
    assert again["code_version"] != first["code_version"]


def test_two_imports_of_one_commit_at_once_make_one_version(client, host, monkeypatch):
    host.repository("lab/digits", FILES)
    other = ask(client, host.address("lab/digits"))
    real = worker.fetch

    def fetch(*given, **more):
        found = real(*given, **more)
        monkeypatch.setattr(worker, "fetch", real)
        worker.code_import(uuid.UUID(other))  # which is done before this one has anything in the store
        return found

    monkeypatch.setattr(worker, "fetch", fetch)
    mine = fetched(client, host.address("lab/digits"))
    theirs = client.get(f"{PATH}{other}/").json()
    assert (mine["state"], mine["code_version"]) == ("ready", theirs["code_version"])
    assert (mine["is_new"], theirs["is_new"]) == (False, True)
    assert CodeVersion.objects.count() == 1
    assert held() == [(sum(map(len, FILES.values())), 0, len(FILES))]


@pytest.mark.parametrize(
    ("address", "code", "field"),
    [
        ("git+https://example.org/lab/digits", "git_host_not_allowed", "address"),
        ("git+ssh://git@example.org/lab/digits", "git_scheme", "address"),
        ("git+https://me:secret@example.org/lab", "git_credentials", "address"),
        ("{host}/lab/digits@x..y", "git_ref", "ref"),
        ("{host}/lab/digits#subdirectory=../x", "git_folder", "folder"),
    ],
)
def test_what_cannot_be_fetched_is_refused_at_once(client, host, address, code, field):
    answer = client.post(PATH, {"address": address.format(host=host.origin)})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["code"], error["field"]) == (code, field)
    assert error["remedy"]
    assert "secret@" not in answer.content.decode()
    assert not CodeImport.objects.exists()


def test_a_portal_that_fetches_nothing_says_so(client, settings):
    settings.YARDMASTER_GIT_HOSTS = []
    answer = client.post(PATH, {"address": "git+https://github.com/lab/digits"})
    assert answer.json()["errors"][0]["code"] == "git_off"


@pytest.mark.parametrize(
    ("files", "more", "code"),
    [
        (FILES, "@mian", "git_ref_not_found"),
        (FILES, "#subdirectory=nothing", "git_folder_not_found"),
        ({"a" * 200 + "/" + "b" * 200 + "/" + "c" * 200: "x"}, "", "path_too_long"),
        ({f"{number}.txt": "" for number in range(501)}, "", "git_too_many_files"),
        ({"big.bin": b"\0" * (9 << 20)}, "", "git_too_large"),
    ],
)
def test_a_failed_import_says_why_and_leaves_nothing(client, host, files, more, code):
    host.repository("lab/digits", files)
    found = fetched(client, host.address("lab/digits") + more)
    assert (found["state"], found["problem"]["code"], found["code_version"]) == ("failed", code, None)
    assert found["problem"]["remedy"] or found["problem"]["errors"]
    assert_nothing_is_left()


def assert_nothing_is_left():
    assert held() == []
    assert not CodeVersion.objects.exists()
    assert not Upload.objects.exclude(state=UploadState.DELETING).exists()


def test_a_namespace_without_capacity_is_not_overfilled(client, host, ada):
    Quota.objects.update_or_create(namespace=ada.personal_namespace, defaults={"storage": 100})
    host.repository("lab/digits", {"train.py": "#" * 1_000})
    found = fetched(client, host.address("lab/digits"))
    assert (found["state"], found["problem"]["code"]) == ("failed", "quota_full")
    assert_nothing_is_left()


def test_a_host_that_is_away_is_asked_again_and_then_given_up(client, host):
    host.repository("lab/digits", FILES)
    host.answers["/lab/digits/info/refs"] = (503, {}, b"")
    found = fetched(client, host.address("lab/digits"))
    assert (found["state"], found["problem"]["code"]) == ("fetching", "git_unreachable")
    del host.answers["/lab/digits/info/refs"]
    look_again(found["id"])
    assert client.get(f"{PATH}{found['id']}/").json()["state"] == "ready"

    host.answers["/lab/other/info/refs"] = (503, {}, b"")
    found = fetched(client, host.address("lab/other"))
    for _ in range(worker.TRIES):
        look_again(found["id"])
    assert client.get(f"{PATH}{found['id']}/").json()["state"] == "failed"


def look_again(import_id):
    """As a worker does when the time has come that was set for it."""
    CodeImport.objects.filter(pk=import_id, next_look_at__isnull=False).update(next_look_at=timezone.now())
    worker.code_import(uuid.UUID(import_id))


class Killed(BaseException):
    """The worker is gone, in the middle of what it did."""


@pytest.mark.parametrize("place", ["fetch", "archive_begin", "archive_put", "upload_finish", "version_of"])
def test_a_worker_that_is_killed_anywhere_costs_nothing_but_time(client, host, monkeypatch, place):
    host.repository("lab/digits", FILES)
    import_id = ask(client, host.address("lab/digits"))
    target = (worker, place) if place != "version_of" else (worker._Work, "_version")
    real = getattr(*target)

    def killed(*given, **more):
        real(*given, **more)
        raise Killed

    monkeypatch.setattr(*target, killed)
    with pytest.raises(Killed):
        worker.code_import(uuid.UUID(import_id))
    monkeypatch.setattr(*target, real)

    worker.code_import(uuid.UUID(import_id))  # its lease still holds
    assert CodeImport.objects.get().state != ImportState.READY
    CodeImport.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    Upload.objects.update(leased_until=None)
    worker.code_import(uuid.UUID(import_id))
    found = client.get(f"{PATH}{import_id}/").json()
    assert (found["state"], found["is_new"]) == ("ready", True)
    assert paths_of(client, found["code_version"]) == sorted(FILES)
    if place != "archive_begin":  # of which this process cannot know: it expires as an upload that was left does
        assert held() == [(sum(map(len, FILES.values())), 0, len(FILES))]
    worker.code_import(uuid.UUID(import_id))
    assert CodeVersion.objects.count() == 1


def test_the_sweep_wakes_what_was_lost_and_forgets_what_is_old(client, host, monkeypatch):
    woken = []
    monkeypatch.setattr(worker, "enqueue_now", lambda message, subject: woken.append(str(subject)))
    import_id = ask(client, host.address("lab/digits"))
    worker.code_imports_sweep(timezone.now())
    assert woken == [import_id]
    CodeImport.objects.update(leased_until=timezone.now() + timedelta(minutes=1))
    worker.code_imports_sweep(timezone.now())
    assert woken == [import_id]
    CodeImport.objects.update(next_look_at=None, created_at=timezone.now() - timedelta(days=8))
    worker.code_imports_sweep(timezone.now())
    assert not CodeImport.objects.exists()


def test_a_private_repository_is_fetched_with_a_secret_of_the_namespace(client, host, ada):
    host.repository("lab/digits", FILES)
    host.token = "t0ken-of-the-lab"
    assert fetched(client, host.address("lab/digits"))["problem"]["code"] == "git_not_found"
    answer = client.post(PATH, {"address": host.address("lab/digits"), "git_token": "GIT"})
    assert answer.json()["errors"][0]["code"] == "unknown_secret"
    secret_set(namespace=ada.personal_namespace, name="GIT", value="t0ken-of-the-lab\n", actor=ada)
    found = fetched(client, host.address("lab/digits"), git_token="GIT")
    assert found["state"] == "ready"
    assert "t0ken" not in str(found)
    assert AuditEvent.objects.filter(action="secret.use_git").count() == 1


def test_only_members_ask_and_see(client, host, bob, signed_in, ada):
    import_id = ask(client, host.address("lab/digits"))
    others = signed_in(bob)
    assert others.get(f"{PATH}{import_id}/").status_code == 404
    assert others.get(PATH).json()["results"] == []
    assert [one["id"] for one in client.get(PATH).json()["results"]] == [import_id]
    Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Role.VIEWER)
    answer = others.post(PATH, {"address": host.address("lab/digits"), "namespace": ada.personal_namespace.slug})
    assert answer.status_code == 403


@pytest.fixture
def member(ada, bob):
    return Membership.objects.create(namespace=ada.personal_namespace, user=bob, role=Role.MEMBER)


@pytest.mark.parametrize("becomes", ["nothing", "viewer", "removed"])
def test_for_whom_is_no_member_any_more_nothing_is_fetched_and_no_secret_used(
    host, ada, bob, member, signed_in, becomes
):
    host.repository("lab/digits", FILES)
    host.token = "t0ken-of-the-lab"
    secret_set(namespace=ada.personal_namespace, name="GIT", value="t0ken-of-the-lab", actor=ada)
    import_id = ask(
        signed_in(bob), host.address("lab/digits"), namespace=ada.personal_namespace.slug, git_token="GIT"
    )  # fmt: skip
    if becomes == "viewer":
        Membership.objects.filter(pk=member.pk).update(role=Role.VIEWER)
    elif becomes == "nothing":
        member.delete()
    else:
        CodeImport.objects.update(created_by=None)  # as the removal of a user does
    worker.code_import(uuid.UUID(import_id))
    found = CodeImport.objects.get()
    code = "permission_denied" if becomes == "viewer" else "user_gone"
    assert (found.state, found.problem["code"], found.next_look_at) == (ImportState.FAILED, code, None)
    assert host.requests == []
    assert not AuditEvent.objects.filter(action="secret.use_git").exists()
    assert_nothing_is_left()


def test_a_member_who_was_removed_during_the_fetch_makes_no_version(host, ada, member, bob, signed_in, monkeypatch):
    host.repository("lab/digits", FILES)
    import_id = ask(signed_in(bob), host.address("lab/digits"), namespace=ada.personal_namespace.slug)
    real = worker.fetch

    def fetch(*given, **more):
        found = real(*given, **more)
        member.delete()
        return found

    monkeypatch.setattr(worker, "fetch", fetch)
    worker.code_import(uuid.UUID(import_id))
    found = CodeImport.objects.get()
    assert (found.state, found.problem["code"]) == (ImportState.FAILED, "user_gone")
    assert_nothing_is_left()


def test_so_many_at_once_and_no_more(client, host):
    for number in range(MOST_OPEN):
        ask(client, host.address(f"lab/{number}"))
    answer = client.post(PATH, {"address": host.address("lab/more")})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_imports")
