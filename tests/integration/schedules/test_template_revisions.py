"""Revisions of templates: which there are, what each changed, and launching one of them by its number."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.schedules.models import JobTemplate, TemplateJob, TemplateRevision
from apps.schedules.templates import template_change
from tests.integration.schedules.conftest import schedule_of, template_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def web(ada, client):
    client.force_login(ada)
    return client


@pytest.fixture
def api(ada) -> APIClient:
    client = APIClient()
    client.force_authenticate(ada)
    return client


@pytest.fixture
def template(world, ada) -> JobTemplate:
    """With two revisions: the newest has an argument more."""
    made = template_of(world, ada)
    spec = made.revisions.get().spec
    return template_change(user=ada, template=made, spec={**spec, "arguments": [*spec["arguments"], "--new"]})


def page_of(template: JobTemplate, rest: str = "") -> str:
    return f"/jobs/templates/{template.pk}/{rest}"


def test_the_list_has_a_launch_button_and_the_number_of_revisions(web, template):
    page = web.get("/jobs/templates/").content.decode()
    assert f'href="{page_of(template)}#launch-title"' in page
    assert f'href="{page_of(template, "revisions/")}"' in page


def test_viewers_get_no_launch_button_and_may_not_launch(web, ada, admin, world, template, django_user_model):
    bob = django_user_model.objects.create_user("bob", "bob@example.org", "x")
    Membership.objects.create(namespace=template.namespace, user=bob, role=Role.VIEWER)
    web.force_login(bob)
    page = web.get(page_of(template, "revisions/")).content.decode()
    assert "Arguments added: --new" in page
    assert "#launch-title" not in page
    assert web.post(page_of(template, "revisions/1/")).status_code == 403
    assert not Job.objects.exists()


def test_the_page_of_revisions_says_who_changed_what_in_few_queries(web, template, django_assert_max_num_queries):
    web.get("/")
    with django_assert_max_num_queries(12):
        page = web.get(page_of(template, "revisions/")).content.decode()
    assert "Arguments added: --new" in page
    assert "The first revision." in page
    assert "<bdi>ada</bdi>" in page
    with django_assert_max_num_queries(12):
        newest = web.get(page_of(template)).content.decode()
    assert "Arguments added: --new" in newest
    assert "Revision 1 of 2" not in newest


def test_a_launch_uses_the_newest_unless_a_revision_is_named(web, template):
    assert web.post(page_of(template), {"p-lr": "0.2"}).status_code == 302
    older = web.get(page_of(template, "revisions/1/")).content.decode()
    assert "Revision 1 of 2." in older
    assert "Launch revision 1" in older
    assert f'action="{page_of(template, "revisions/1/")}"' in older
    assert web.post(page_of(template, "revisions/1/"), {"p-lr": "0.3"}).status_code == 302
    launched = {one.revision: one.job.spec["arguments"] for one in TemplateJob.objects.select_related("job")}
    assert launched == {2: ["--lr=0.2", "", "--new"], 1: ["--lr=0.3", ""]}


def test_the_api_lists_shows_and_launches_revisions(api, template):
    one = f"/api/v1/job-templates/{template.pk}/"
    rows = api.get(f"{one}revisions/").json()
    assert [(row["revision"], row["by"], row["changes"]) for row in rows] == [
        (2, "ada", ["Arguments added: --new"]), (1, "ada", []),
    ]  # fmt: skip
    assert api.get(f"{one}revisions/1/").json()["spec"]["arguments"] == ["--lr={{lr}}", "{{note}}"]
    job = api.post(f"{one}launch/", {"parameters": {"lr": 0.3}, "revision": 1}, format="json").json()
    assert TemplateJob.objects.get(job=job["id"]).revision == 1
    job = api.post(f"{one}launch/", {"parameters": {"lr": 0.3}}, format="json").json()
    assert TemplateJob.objects.get(job=job["id"]).revision == 2
    for number in (3, 99_999_999_999, 0):
        assert api.get(f"{one}revisions/{number}/").status_code == 404
    assert api.post(f"{one}launch/", {"revision": 7}, format="json").status_code == 404
    assert api.post(f"{one}launch/", {"revision": 2**40}, format="json").status_code == 400


def test_a_revision_whose_predecessor_is_not_kept_says_so(api, web, template):
    TemplateRevision.objects.filter(template=template, number=1).delete()
    assert api.get(f"/api/v1/job-templates/{template.pk}/revisions/").json()[0]["changes"] is None
    assert "is no longer kept" in web.get(page_of(template, "revisions/")).content.decode()


def test_a_foreign_template_has_no_revisions(web, template, django_user_model):
    web.force_login(django_user_model.objects.create_user("eve", "eve@example.org", "x"))
    for rest in ("revisions/", "revisions/1/"):
        assert web.get(page_of(template, rest)).status_code == 404


def test_a_schedule_launches_the_newest(world, ada, template):
    from apps.schedules.services import schedule_run_now

    job = schedule_run_now(user=ada, schedule=schedule_of(template, ada))
    assert TemplateJob.objects.get(job=job).revision == 2
