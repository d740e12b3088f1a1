"""The pages of the catalogue: what everyone sees, and what administrators change."""

from __future__ import annotations

import pytest

from apps.images.models import Image
from apps.namespaces.models import Namespace
from apps.namespaces.services import team_create
from tests.integration.jobs.test_job_images import FIRST, SECOND, add
from tests.integration.pages.form_of_page import form_of
from tests.integration.pages.test_account_pages import HOSTILE

pytestmark = pytest.mark.django_db
SENT = {"name": "tf", "reference": FIRST, "everyone": "on", "enabled": "on"}


@pytest.fixture
def team(ada, admin) -> Namespace:
    return team_create(slug="vision", title="Vision", manager=ada, actor=admin)


def test_an_administrator_adds_changes_and_removes_an_image(admin, team, client):
    client.force_login(admin)
    facts = {
        "python": "3.11",
        "tensorflow": "2.19.0",
        "strategies": "single, batch",
        "packages": "pandas opencv-python",
    }
    answer = client.post("/images/", SENT | facts | {"gpus": "on", "everyone": "", "namespaces": "vision"})
    assert answer.status_code == 302, answer.content.decode()
    made = Image.objects.get()
    assert (made.strategies, made.packages, made.gpus) == (["single", "batch"], ["pandas", "opencv-python"], True)
    assert (made.everyone, [one.slug for one in made.namespaces.all()]) == (False, ["vision"])
    page = client.get("/images/tf/").content.decode()
    assert all(f'value="{text}"' in page for text in ("single, batch", "pandas, opencv-python", "vision", "3.11"))
    assert client.post("/images/tf/", {"reference": SECOND, "everyone": "on"}).status_code == 302
    made.refresh_from_db()
    assert (made.reference, made.everyone, made.enabled, made.packages) == (SECOND, True, False, None)
    assert client.post("/images/tf/delete/").status_code == 302
    assert not Image.objects.exists()


def test_saving_an_image_that_no_namespace_may_use_opens_it_to_none(admin, client):
    add(admin, "tf", everyone=False)
    client.force_login(admin)
    form = form_of(client.get("/images/tf/").content.decode(), form_id="image")
    assert "everyone" not in form
    assert client.post("/images/tf/", form | {"description": "changed"}).status_code == 302
    found = Image.objects.get()
    assert (found.description, found.everyone) == ("changed", False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reference": "ghcr.io/a/b:latest"}, "no digest"),
        ({"name": "Not A Name"}, "lowercase letters"),
        ({"namespaces": "nowhere", "everyone": ""}, "There is no namespace nowhere."),
        ({"namespaces": "vision"}, "untick “Every namespace may use it”"),
        ({"strategies": "sing"}, "There is no such strategy."),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_nothing_is_lost(admin, client, changes, words):
    client.force_login(admin)
    answer = client.post("/images/", SENT | {"description": "kept"} | changes)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert words in page
    assert 'value="kept"' in page
    assert not Image.objects.exists()


def test_others_see_what_they_may_use_and_change_nothing(ada, bob, admin, team, client, django_assert_max_num_queries):
    for number in range(5):
        add(admin, f"one-{number}", description=HOSTILE[:200], everyone=False, namespaces=[team])
    client.force_login(ada)
    with django_assert_max_num_queries(10):
        page = client.get("/images/").content.decode()
    assert "one-4" in page
    assert "only vision" in page
    assert "<script>alert" not in page
    assert "Add image" not in page
    for address in ("/images/", "/images/one-1/", "/images/one-1/delete/"):
        assert client.post(address, SENT).status_code == 403
    assert client.get("/images/one-1/").status_code == 403
    client.force_login(bob)
    assert "one-4" not in client.get("/images/").content.decode()
    assert Image.objects.count() == 5
