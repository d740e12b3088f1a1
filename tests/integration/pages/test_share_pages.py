"""The admin pages and the API of shares and priority classes: what they change, what is recorded, what they refuse."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.namespaces.models import PriorityClass, ShareNode

pytestmark = pytest.mark.django_db
REASON = "As the board decided"


def actions() -> list[str]:
    found = AuditEvent.objects.filter(action__regex="^(share|priority_class)").order_by("pk")
    return list(found.values_list("action", flat=True))


def test_others_are_refused(web, ada, signed_in):
    for address in ("/admin/shares/", "/admin/priority-classes/"):
        assert web.get(address).status_code == 403
    assert signed_in(ada).get("/api/v1/shares/").status_code == 403
    assert signed_in(ada).post("/api/v1/priority-classes/", {"name": "mine", "value": 1000}).status_code == 403
    assert signed_in(ada).get("/api/v1/priority-classes/").status_code == 200


def test_a_tree_is_made_shown_changed_and_removed_on_the_page(admin, ada, client):
    client.force_login(admin)
    assert "No groups yet" in client.get("/admin/shares/").content.decode()
    group = {"what": "group", "g-name": "research", "g-weight": 3, "g-cpu": 2, "g-memory": "8Gi", "g-reason": REASON}
    assert client.post("/admin/shares/", group).status_code == 302
    slug = ada.personal_namespace.slug
    place = {"what": "namespace", "n-namespace": slug, "n-parent": "research", "n-weight": 1, "n-reason": REASON}
    assert client.post("/admin/shares/", place).status_code == 302
    node = ShareNode.objects.get(namespace=ada.personal_namespace)
    assert node.parent.guaranteed == {"cpu": 2.0, "memory": 8 << 30}
    text = client.get("/admin/shares/").content.decode()
    for words in ("research", slug, "2 CPU", "8 GiB memory", "All other namespaces"):
        assert words in text
    changed = client.post(f"/admin/shares/{node.pk}/", {"parent": "", "weight": 5, "reason": REASON})
    assert changed.status_code == 302
    node.refresh_from_db()
    assert (node.parent, node.weight) == (None, 5)
    event = AuditEvent.objects.get(action="share.change")
    assert (event.facts["weight"], event.facts["weight_before"], event.facts["reason"]) == (5, 1, REASON)
    assert client.post(f"/admin/shares/{node.pk}/remove/", {"reason": REASON}).status_code == 302
    assert not ShareNode.objects.filter(pk=node.pk).exists()
    assert actions() == ["share.create", "share.create", "share.change", "share.remove"]


def test_what_cannot_be_is_said_at_its_field(admin, client):
    client.force_login(admin)
    place = {"what": "namespace", "n-namespace": "no-such", "n-weight": 1, "n-reason": REASON}
    answer = client.post("/admin/shares/", place)
    assert answer.status_code == 400
    assert "There is no such namespace." in answer.content.decode()
    group = {"what": "group", "g-name": "research", "g-weight": -1, "g-memory": "much", "g-reason": REASON}
    assert client.post("/admin/shares/", group).status_code == 400
    assert not ShareNode.objects.exists()


def test_the_api_refuses_circles_full_groups_and_two_defaults(admin, signed_in):
    api = signed_in(admin)

    def post(**values):
        return api.post("/api/v1/shares/", {"reason": REASON, **values}, format="json")

    outer = post(name="outer", weight=2, is_default=True).data
    inner = post(name="inner", parent="outer").data
    assert (inner["parent"], outer["is_default"]) == ("outer", True)
    circle = api.patch(f"/api/v1/shares/{outer['id']}/", {"parent": "inner", "reason": REASON}, format="json")
    assert (circle.status_code, circle.data["errors"][0]["field"]) == (400, "parent")
    full = api.delete(f"/api/v1/shares/{outer['id']}/")
    assert (full.status_code, full.data["code"]) == (409, "group_not_empty")
    assert post(name="third", is_default=True).status_code == 400
    placed = post(namespace=admin.personal_namespace.slug, is_default=True)
    assert placed.data["is_default"] is False, "a namespace is no group"
    assert post(name="outer").status_code == 400
    assert post(parent="outer").data["errors"][0]["code"] == "conflict"
    assert (
        api.patch(f"/api/v1/shares/{inner['id']}/", {"weight": 0, "reason": REASON}, format="json").data["weight"] == 0
    )
    assert api.delete(f"/api/v1/shares/{inner['id']}/?reason=over").status_code == 204


def test_the_page_of_shares_asks_the_same_however_many_nodes_there_are(admin, client, django_assert_max_num_queries):
    client.force_login(admin)
    group = ShareNode.objects.create(name="research")
    for at in range(20):
        ShareNode.objects.create(name=f"group-{at}", parent=group)
    with django_assert_max_num_queries(12):
        client.get("/admin/shares/")


def test_classes_are_made_changed_and_removed(admin, ada, client, signed_in):
    client.force_login(admin)
    assert "No classes yet" in client.get("/admin/priority-classes/").content.decode()
    slug = ada.personal_namespace.slug
    urgent = {"name": "urgent", "value": 500, "users": "namespaces", "namespaces": slug, "description": "For papers"}
    assert client.post("/admin/priority-classes/", urgent).status_code == 302
    assert [one["name"] for one in signed_in(ada).get("/api/v1/priority-classes/").data] == ["urgent"]
    assert slug in client.get("/admin/priority-classes/").content.decode()
    change = {"value": 400, "users": "everyone", "is_default": "on"}
    assert client.post("/admin/priority-classes/urgent/", change).status_code == 302
    api = signed_in(admin)
    usual = {"name": "usual", "value": 10, "is_default": True}
    assert api.post("/api/v1/priority-classes/", usual, format="json").status_code == 201
    assert PriorityClass.objects.get(is_default=True).name == "usual"
    closed = api.patch("/api/v1/priority-classes/usual/", {"users": "administrators"}, format="json")
    assert closed.data["errors"][0]["field"] == "is_default"
    assert api.post("/api/v1/priority-classes/", {"name": "Bad Name", "value": 1}, format="json").status_code == 400
    assert client.post("/admin/priority-classes/urgent/remove/").status_code == 302
    assert api.delete("/api/v1/priority-classes/usual/").status_code == 204
    assert not PriorityClass.objects.exists()
    assert len(actions()) == 5


def test_the_launch_page_offers_the_classes_one_may_use(web, ada):
    assert "Priority class" not in web.get("/jobs/launch/").content.decode()
    PriorityClass.objects.create(name="usual", value=10, description="For every day")
    PriorityClass.objects.create(name="urgent", value=500, users="administrators")
    text = web.get("/jobs/launch/").content.decode()
    assert "usual (10) For every day" in text
    assert "urgent (500)" not in text


def test_groups_are_at_most_six_below_each_other_however_they_get_there(admin, ada, signed_in):
    api = signed_in(admin)

    def group(name: str, parent: str) -> int:
        return api.post("/api/v1/shares/", {"name": name, "parent": parent, "weight": 1, "reason": REASON}).status_code

    assert [group(f"level-{n}", f"level-{n - 1}" if n > 1 else "") for n in range(1, 8)] == [201] * 6 + [400]
    place = {"namespace": ada.personal_namespace.slug, "parent": "level-6", "weight": 1, "reason": REASON}
    assert api.post("/api/v1/shares/", place).status_code == 201
    assert [group("tall", ""), group("taller", "tall")] == [201, 201]
    tall = ShareNode.objects.get(name="tall")
    moved = {"parent": "level-5", "weight": 1, "reason": REASON}
    answer = api.patch(f"/api/v1/shares/{tall.pk}/", moved)
    assert answer.status_code == 400
    assert "level-5" in answer.content.decode()
    assert api.patch(f"/api/v1/shares/{tall.pk}/", moved | {"parent": "level-4"}).status_code == 200
