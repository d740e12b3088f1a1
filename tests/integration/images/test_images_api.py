"""The catalogue of images: who sees which, who changes it, what is refused, and what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from apps.audit.models import AuditEvent
from apps.images.models import Image
from apps.namespaces.models import Namespace
from apps.namespaces.services import team_create

pytestmark = pytest.mark.django_db
URL = "/api/v1/images/"
DIGEST = "sha256:" + "ab" * 32
REFERENCE = f"registry.example/ml/tf:2.19@{DIGEST}"


@pytest.fixture
def root(admin, signed_in):
    return signed_in(admin)


@pytest.fixture
def team(admin, ada) -> Namespace:
    return team_create(slug="vision", title="Vision", manager=ada, actor=admin)


def image(**changes: Any) -> dict[str, Any]:
    return {"name": "tf-2.19", "reference": REFERENCE, **changes}


def added(root, **changes: Any) -> dict[str, Any]:
    answer = root.post(URL, image(**changes), format="json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def names(client, query: str = "") -> list[str]:
    return [one["name"] for one in client.get(URL + query).json()["results"]]


def codes(answer) -> dict[str, str]:
    assert answer.status_code == 400, answer.content
    assert all(one["message"] and one["remedy"] for one in answer.json()["errors"])
    return {one["field"]: one["code"] for one in answer.json()["errors"]}


def test_an_administrator_adds_changes_and_removes_an_image(root, ada, signed_in):
    made = added(
        root, python="3.11", tensorflow="2.19.0", strategies=["single"], gpus=True, description="With CUDA",
        pull_secret="registry-password", packages=["tensorflow", "pandas"],
    )  # fmt: skip
    assert made["digest"] == DIGEST
    assert (made["everyone"], made["namespaces"], made["enabled"]) == (True, [], True)
    assert made["pull_secret"] == "registry-password"
    assert root.get(URL).json()["results"] == [made]
    seen = made | {"pull_secret": ""}
    assert signed_in(ada).get(f"{URL}tf-2.19/").json() == seen
    assert signed_in(ada).get(URL).json()["results"] == [seen]
    changed = root.patch(f"{URL}tf-2.19/", {"gpus": False, "packages": None}, format="json").json()
    assert (changed["gpus"], changed["packages"], changed["python"]) == (False, None, "3.11")
    assert root.delete(f"{URL}tf-2.19/").status_code == 204
    assert root.get(f"{URL}tf-2.19/").status_code == 404
    actions = AuditEvent.objects.filter(action__startswith="image.").order_by("pk")
    assert [one.action for one in actions] == ["image.create", "image.change", "image.delete"]


def test_an_image_is_for_everyone_or_for_the_namespaces_that_are_named(root, ada, bob, team, signed_in):
    added(root, name="all")
    added(root, name="vision-only", namespaces=["vision"])
    assert names(signed_in(ada)) == ["vision-only", "all"]
    assert names(signed_in(bob)) == ["all"]
    assert names(signed_in(ada), "?namespace=ada") == ["all"]
    assert names(signed_in(ada), "?namespace=vision") == ["vision-only", "all"]
    assert signed_in(bob).get(f"{URL}vision-only/").status_code == 404
    assert signed_in(bob).get(f"{URL}?namespace=vision").status_code == 404
    assert signed_in(ada).get(f"{URL}vision-only/").json()["namespaces"] == ["vision"]


def test_the_namespaces_of_others_are_not_shown(root, ada, bob, team, signed_in):
    added(root, name="shared", namespaces=["vision", "bob"])
    assert signed_in(bob).get(f"{URL}shared/").json()["namespaces"] == ["bob"]
    assert root.get(f"{URL}shared/").json()["namespaces"] == ["bob", "vision"]


def test_one_that_is_turned_off_is_seen_by_administrators_alone(root, ada, signed_in):
    added(root, enabled=False)
    assert names(signed_in(ada)) == []
    assert signed_in(ada).get(f"{URL}tf-2.19/").status_code == 404
    assert names(root) == ["tf-2.19"]
    assert names(root, "?namespace=ada") == []


def test_only_administrators_change_the_catalogue(root, ada, signed_in, with_token, admin):
    added(root)
    for client in (signed_in(ada), with_token(admin, "jobs")):
        assert client.post(URL, image(name="other"), format="json").status_code == 403
        assert client.patch(f"{URL}tf-2.19/", {"gpus": True}, format="json").status_code == 403
        assert client.delete(f"{URL}tf-2.19/").status_code == 403
    assert with_token(ada, "read").get(URL).status_code == 200


@pytest.mark.parametrize(
    ("reference", "code", "word"),
    [
        ("ghcr.io/team/tf:2.19", "digest_missing", "no digest"),
        ("tensorflow/tensorflow@" + DIGEST, "bad_value", "registry"),
        ("ghcr.io/team/tf@sha256:0", "bad_value", "64 digits"),
    ],
)
def test_a_reference_without_a_digest_is_refused_with_the_remedy(root, reference, code, word):
    answer = root.post(URL, image(reference=reference), format="json")
    assert codes(answer) == {"reference": code}
    problem = answer.json()["errors"][0]
    assert word in problem["message"] + problem["remedy"]
    assert problem["value"] == reference


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("name", "Not A Name", "bad_value"),
        ("python", "three", "bad_value"),
        ("tensorflow", "2.x", "bad_value"),
        ("strategies", ["sing"], "bad_value"),
        ("strategies", ["service"], "bad_value"),
        ("description", "x" * 501, "too_long"),
        ("pull_secret", "A_B", "bad_value"),
        ("packages", ["pandas>=2"], "bad_value"),
    ],
)
def test_what_no_image_can_have_is_refused(root, field, value, code):
    assert codes(root.post(URL, image(**{field: value}), format="json")) == {field: code}
    assert not Image.objects.exists()


def test_names_are_unique_and_stay(root):
    added(root)
    assert codes(root.post(URL, image(), format="json")) == {"name": "unique"}
    assert root.patch(f"{URL}tf-2.19/", {"name": "other"}, format="json").status_code == 400


def test_a_namespace_that_is_removed_is_no_reason_for_everyone(root, ada, team, signed_in):
    added(root, namespaces=["vision"])
    team.delete()
    assert names(signed_in(ada)) == []
    assert root.get(f"{URL}tf-2.19/").json()["everyone"] is False


def test_a_list_costs_the_same_whatever_is_in_it(root, ada, team, signed_in, django_assert_max_num_queries):
    for number in range(8):
        added(root, name=f"one-{number}", namespaces=["vision", "ada"])
    client = signed_in(ada)
    with django_assert_max_num_queries(8):
        assert len(names(client)) == 8
