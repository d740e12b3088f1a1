"""The page of engines: what there is, what is free, and devices by the names that people choose, with their quotas."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.jobs.engines.device_quotas import MOST, device_quotas
from apps.jobs.models import Reservation
from apps.namespaces.models import Membership, Namespace, Quota, Role
from yardmaster.engines.fake import FakeEngine
from yardmaster.job.spec import Resources

A100 = "device/a100-40gb"
SIZE = Resources(8, 32 << 30, 0, {A100: 4, "rdma/hca": 2})


class Named(FakeEngine):
    """With a device that its operator named."""

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name, total=SIZE)

    def devices(self):
        return {"device/a100-40gb": "A100 40GB", "device/t4": "T4"}


@pytest.fixture
def named(settings):
    settings.YARDMASTER_ENGINES = {"named": {"class": f"{__name__}.Named"}}
    settings.YARDMASTER_DEFAULT_ENGINE = "named"


@pytest.mark.django_db
def test_devices_have_the_operators_names_and_all_amounts_are_told(client, ada, named):
    client.force_login(ada)
    page = client.get("/engines/").content.decode()
    for words in ("A100 40GB", "device/a100-40gb", "T4", "rdma/hca", "CPU cores", "32 GiB", "Default"):
        assert words in page
    assert "GPUs" not in page.partition("<table")[2].partition("</table>")[0], "there are none"


@pytest.mark.django_db
def test_the_api_says_the_same_by_names_for_programs(client, ada, named):
    client.force_login(ada)
    (engine,) = client.get("/api/v1/engines/").json()["results"]
    first, second = engine["devices"]
    mine = {"namespace": "ada", "hard": None, "used": 0}
    assert first == {"name": A100, "label": "A100 40GB", "total": 4, "free": 4, "held": 0, "quotas": [mine]}
    assert (second["label"], second["total"]) == ("T4", 0)


@pytest.mark.django_db
def test_the_launch_page_says_how_to_ask_for_a_device(client, ada, named):
    client.force_login(ada)
    page = client.get("/jobs/launch/").content.decode()
    assert "device/a100-40gb=1" in page
    assert "4 of 4 free" in page


@pytest.mark.django_db
def test_an_engine_that_does_not_answer_says_why(client, ada, settings):
    settings.YARDMASTER_ENGINES = {"away": {"class": "yardmaster.engines.fake.EngineThatIsAway"}}
    settings.YARDMASTER_DEFAULT_ENGINE = "away"
    client.force_login(ada)
    answer = client.get("/engines/")
    assert answer.status_code == 200
    assert "alert-warning" in answer.content.decode()


# --- what namespaces may hold of devices -----------------------------------------------------------------------------


def holds(namespace: Namespace, pieces: int, engine: str = "named", device: str = A100) -> None:
    """A job of the namespace holds so many."""
    Reservation.objects.create(
        job_id=uuid.uuid4(), namespace=namespace, engine=engine, attempt=1, role="worker", cpu=1, memory=1, gpus=0,
        extended={device: pieces}, reserved_at=timezone.now(),
    )  # fmt: skip


def team(slug: str, user: User, role: Role = Role.MEMBER, **limits: Any) -> Namespace:
    """A team that the user is in."""
    made = Namespace.objects.create(slug=slug)
    Membership.objects.create(namespace=made, user=user, role=role)
    Quota.objects.create(namespace=made, **limits)
    return made


def quotas(user: User, device: str = A100) -> list[tuple[str, int | None, int]]:
    client = APIClient()
    client.force_login(user)
    (engine,) = client.get("/api/v1/engines/").json()["results"]
    (found,) = [one["quotas"] for one in engine["devices"] if one["name"] == device]
    return [(one["namespace"], one["hard"], one["used"]) for one in found]


@pytest.mark.django_db
def test_a_devices_limit_and_what_is_in_use_are_told_for_each_namespace_in_which_one_may_launch(ada, bob, named):
    vision = team("vision", ada, extended={A100: 3})
    team("readers", ada, Role.VIEWER)
    closed = team("closed", ada)
    Namespace.objects.filter(pk=closed.pk).update(closed_at=timezone.now())
    others = team("others", bob, extended={A100: 2})
    holds(vision, 2)
    holds(vision, 1, engine="another")  # a quota is one for all engines
    holds(others, 1)
    assert quotas(ada) == [("vision", 3, 3), ("ada", None, 0)]
    assert quotas(bob) == [("others", 2, 1), ("bob", None, 0)]


@pytest.mark.django_db
def test_a_limit_on_gpus_makes_a_device_that_is_not_named_0_as_admission_does(ada, named):
    Quota.objects.filter(namespace=ada.personal_namespace).update(gpus=4, extended={A100: 1})
    assert quotas(ada) == [("ada", 1, 0)]
    assert quotas(ada, "device/t4") == [("ada", 0, 0)]


@pytest.mark.django_db
def test_an_administrator_sees_their_own_namespaces_and_those_that_hold_some(ada, bob, admin, named):
    vision, closed = team("vision", ada, extended={A100: 3}), team("closed", ada, extended={A100: 3})
    Namespace.objects.filter(pk=closed.pk).update(closed_at=timezone.now())
    holds(vision, 2)
    assert quotas(admin) == [("vision", 3, 2), ("admin", None, 0)]
    holds(closed, 1)
    assert quotas(admin) == [("vision", 3, 2), ("closed", 3, 1), ("admin", None, 0)]
    assert quotas(admin, "device/t4") == [("admin", None, 0)], "of the others, only what they hold"


@pytest.mark.django_db
def test_the_list_is_bounded_and_begins_with_those_that_hold_the_most(ada, admin, named):
    for number in range(MOST + 3):
        holds(team(f"team-{number:02}", ada), number)
    for user in (ada, admin):
        found = quotas(user)
        assert len(found) == MOST
        assert found[:2] == [("team-22", None, 22), ("team-21", None, 21)]


@pytest.mark.django_db
def test_more_namespaces_and_devices_take_no_more_queries(ada, named, django_assert_num_queries):
    with django_assert_num_queries(3):
        device_quotas(ada, [A100])
    for number in range(5):
        holds(team(f"team-{number}", ada), 1)
    with django_assert_num_queries(3):
        assert len(device_quotas(ada, [A100, "device/t4"])[A100]) == 6
    with django_assert_num_queries(0):
        assert device_quotas(ada, []) == {}


@pytest.mark.django_db
def test_the_page_has_a_row_for_each_with_a_link_to_the_namespace(client, ada, named):
    vision = team("vision", ada, extended={A100: 3})
    holds(vision, 2)
    client.force_login(ada)
    table = client.get("/engines/").content.decode().partition('aria-labelledby="quotas-named"')[2]
    assert f'href="/namespaces/{vision.pk}/"' in table
    first, second, *_ = rows_of(table)
    assert first == ["A100 40GB", "vision", "2", "3"]
    assert second == ["A100 40GB", "ada", "0", "no limit"]


def rows_of(table: str) -> list[list[str]]:
    body = table.partition("<tbody>")[2].partition("</tbody>")[0]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in body.split("</tr>")]
    return [[re.sub("<[^>]+>", "", cell) for cell in row] for row in cells if row]


@pytest.mark.django_db
def test_where_one_may_not_launch_no_quota_is_told(client, ada, named, monkeypatch):
    monkeypatch.setattr(Named, "isolates", False)
    client.force_login(ada)
    assert "quotas-named" not in client.get("/engines/").content.decode()
    assert quotas(ada) == []
