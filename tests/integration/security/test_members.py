"""What people who are let in can take beyond what is theirs."""

from __future__ import annotations

import pytest

from apps.namespaces.models import Membership, Namespace, Role
from apps.uploads.models import StorageAccount
from apps.uploads.storage_ledger import MOST
from tests.integration.sending import begin, complete, send, store

__all__ = ["store"]

pytestmark = pytest.mark.django_db
FILES = {"train.py": b"print(1)\n"}


@pytest.fixture
def team(ada, bob) -> Namespace:
    team = Namespace.objects.create(slug="team")
    Membership.objects.create(namespace=team, user=ada, role=Role.MANAGER)
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    return team


def test_a_viewer_can_use_no_upload_of_the_team(ada, bob, team, signed_in):
    upload = begin(signed_in(ada), FILES, kind="code", namespace="team")
    send(signed_in(ada), upload, FILES)
    viewer = signed_in(bob)
    address = f"/api/v1/uploads/{upload['id']}/"
    assert viewer.get(address).status_code == 200
    assert viewer.delete(address).status_code == 403
    assert viewer.post(f"{address}parts/", {"parts": [{"file": 0, "part": 1, "sha256": "0" * 64}]}).status_code == 403
    assert complete(viewer, upload["id"]).status_code == 403
    assert complete(signed_in(ada), upload["id"]).status_code == 200
    assert viewer.post("/api/v1/code/", {"name": "mine", "upload": upload["id"]}).status_code == 403
    mine = viewer.post("/api/v1/code/", {"name": "mine", "upload": upload["id"], "namespace": "bob"})
    assert mine.status_code == 403


def test_an_upload_of_a_stranger_is_not_there(ada, bob, signed_in):
    upload = begin(signed_in(ada), FILES, kind="code")
    stranger = signed_in(bob)
    for answer in (
        stranger.get(f"/api/v1/uploads/{upload['id']}/"),
        stranger.delete(f"/api/v1/uploads/{upload['id']}/"),
        complete(stranger, upload["id"]),
        stranger.post("/api/v1/code/", {"name": "mine", "upload": upload["id"]}),
    ):
        assert answer.status_code == 404


def test_without_a_quota_the_books_still_have_an_end(ada, signed_in):
    """Past 2^63 SQLite goes on in floats, and no byte was ever given back exactly again."""
    begin(signed_in(ada), {"a": b""})
    StorageAccount.objects.update(reserved=MOST - 10)
    files = {"kind": "dataset", "files": [{"path": "a", "size": 11}]}
    answer = signed_in(ada).post("/api/v1/uploads/", files)
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")


def test_a_search_longer_than_any_name_is_refused_and_not_an_outage(ada, signed_in):
    for path in ("/api/v1/datasets/", "/api/v1/code/"):
        assert signed_in(ada).get(path, {"search": "a" * 60_000}).status_code == 400


@pytest.mark.parametrize("scopes", [("read",), ("jobs",), ("data",), ("jobs", "data", "read"), ("admin",)])
def test_no_scoped_token_makes_itself_a_stronger_one(admin, with_token, scopes):
    token = with_token(admin, *scopes)
    assert token.post("/api/v1/tokens/", {"name": "more"}).status_code == 403
    assert token.patch("/api/v1/me/", {"first_name": "x"}).status_code == 403


def test_the_scope_admin_gives_nothing_to_who_is_none(ada, admin, with_token):
    token = with_token(ada, "admin")
    assert token.get("/api/v1/users/").status_code == 403
    assert token.post(f"/api/v1/users/{admin.pk}/sign-in-link/").status_code == 403
    assert token.post("/api/v1/namespaces/", {"slug": "mine"}).status_code == 403
    quota = f"/api/v1/namespaces/{ada.personal_namespace.pk}/quota/"
    limits = {"cpu": None, "memory": None, "gpus": None, "storage": None, "running_jobs": None}
    assert token.put(quota, limits).status_code == 403


def test_keys_that_nobody_may_set_are_refused(ada, team, signed_in):
    client = signed_in(ada)
    assert client.patch("/api/v1/me/", {"is_staff": True}).status_code == 400
    assert client.patch(f"/api/v1/namespaces/{team.pk}/", {"title": "x", "owner": str(ada.pk)}).status_code == 400
    body = {"kind": "dataset", "files": [{"path": "a", "size": 1}], "key_prefix": "code/x"}
    assert client.post("/api/v1/uploads/", body).status_code == 400
    assert client.post("/api/v1/tokens/", {"name": "x", "user": str(ada.pk)}).status_code == 400
