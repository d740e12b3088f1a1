"""What people who are let in can take beyond what is theirs."""

from __future__ import annotations

import pytest

from apps.namespaces.models import Membership, Namespace, Role
from apps.uploads.models import StorageAccount, Upload
from apps.uploads.storage_ledger import MOST
from tests.integration.sending import begin, complete, part, send, store

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


@pytest.fixture
def members(team, bob) -> Namespace:
    Membership.objects.filter(namespace=team, user=bob).update(role=Role.MEMBER)
    return team


def test_a_member_cannot_swap_the_bytes_of_anothers_upload(ada, bob, members, signed_in):
    upload = begin(signed_in(ada), FILES, kind="code", namespace="team")
    send(signed_in(ada), upload, FILES)
    other, address = signed_in(bob), f"/api/v1/uploads/{upload['id']}/"
    for path, body in (
        ("parts/", {"parts": [part(0, 1, b"print(2)\n")]}),
        ("files/", {"after": 1, "files": [{"path": "z.py", "size": 1}]}),
        ("complete/", {}),
    ):
        answer = other.post(f"{address}{path}", body)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert answer.json()["detail"] == "ada started this upload, and only they can send to it."
        assert answer.json()["remedy"] == "Start an upload of your own."
    assert other.get(address).status_code == 200, "what is under way in a team is seen by its members"
    assert complete(signed_in(ada), upload["id"]).status_code == 200


def test_a_manager_sends_to_no_upload_of_another_either(ada, bob, members, signed_in):
    upload = begin(signed_in(bob), FILES, kind="code", namespace="team")
    assert complete(signed_in(ada), upload["id"]).status_code == 403


def test_an_upload_is_discarded_by_who_started_it_and_by_managers(ada, bob, members, signed_in):
    of_ada, of_bob, other = (
        f"/api/v1/uploads/{begin(signed_in(user), FILES, kind='code', namespace='team')['id']}/"
        for user in (ada, bob, bob)
    )
    refused = signed_in(bob).delete(of_ada)
    assert (refused.status_code, refused.json()["detail"]) == (403, "ada started this upload.")
    assert refused.json()["remedy"] == "They or a manager of team can discard it."
    page = signed_in(bob).post("/code/upload/", {"discard": of_ada.split("/")[-2]}, format="multipart")
    assert page.status_code == 403
    assert signed_in(bob).delete(of_bob).status_code == 204
    assert signed_in(ada).delete(other).status_code == 204
    assert signed_in(ada).get(of_ada).status_code == 200


def test_an_upload_whose_sender_was_removed_is_continued_by_no_user(ada, bob, members, signed_in):
    upload = begin(signed_in(bob), FILES, kind="code", namespace="team")
    Upload.objects.update(created_by=None)
    answer = complete(signed_in(bob), upload["id"])
    assert answer.json()["detail"].startswith("A user who was removed started this upload")
    assert signed_in(ada).delete(f"/api/v1/uploads/{upload['id']}/").status_code == 204
