"""The pages of templates and schedules, with forms as a browser sends them."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from apps.schedules.models import JobTemplate, Schedule, ScheduleRun, TemplateRevision
from tests.integration.schedules.conftest import schedule_of, template_of

pytestmark = pytest.mark.django_db
NO_ROW = {"kind": "text", "default": "", "minimum": "", "maximum": "", "choices": "", "help": ""}


@pytest.fixture
def me(ada) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def rows(*some: dict[str, str]) -> dict[str, str]:
    found = {"rows-TOTAL_FORMS": str(len(some)), "rows-INITIAL_FORMS": str(len(some))}
    for index, one in enumerate(some):
        found |= {f"rows-{index}-{name}": text for name, text in ({"name": ""} | NO_ROW | one).items()}
    return found


def test_a_job_is_saved_as_a_template_by_the_page_and_launched_with_its_small_form(world, ada, me):
    job = world.launch(ada, arguments=["--lr=0.5"])
    page = me.get(reverse("template_new"), {"job": str(job.pk)})
    assert page.status_code == 200
    spec = page.context["spec"]
    body = {
        "spec": spec, "engine": job.engine, "in": "ada", "name": "baseline", "description": "For the paper",
        "arguments": "--lr={{ lr }}\n--mode\n{{mode}}", "environment": "A=1\nB=two words", "replaces": "",
        **rows({"name": "lr", "kind": "number", "default": "0.1", "maximum": "1"},
               {"name": "mode", "kind": "choice", "choices": "fast, slow"}, {}),
    }  # fmt: skip
    more = me.post(reverse("template_new"), body | {"add": "1"})
    assert (more.status_code, len(more.context["rows"].forms)) == (200, 5)
    saved = me.post(reverse("template_new"), body)
    template = JobTemplate.objects.get()
    assert saved.url == reverse("template_page", args=[template.pk])
    revision = TemplateRevision.objects.get()
    assert revision.spec["arguments"] == ["--lr={{lr}}", "--mode", "{{mode}}"]
    assert revision.spec["environment"] == {"A": "1", "B": "two words"}
    address = reverse("template_page", args=[template.pk])
    assert "fast" in me.get(address).content.decode()
    refused = me.post(address, {"p-lr": "7", "p-mode": "fast"})
    assert refused.status_code == 422
    assert "at most 1" in refused.content.decode()
    launched = me.post(address, {"p-lr": "0.25", "p-mode": "slow", "name": "by hand"})
    job = Job.objects.get(name="by hand")
    assert launched.url == reverse("job_page", args=[job.pk])
    assert job.spec["arguments"] == ["--lr=0.25", "--mode", "slow"]
    shown = me.get(launched.url).content.decode()
    assert reverse("template_page", args=[template.pk]) in shown
    assert "revision 1" in shown


def test_a_row_that_is_wrong_says_so_at_its_field(world, ada, me):
    job = world.launch(ada)
    spec = me.get(reverse("template_new"), {"job": str(job.pk)}).context["spec"]
    body = {"spec": spec, "in": "ada", "name": "x", "arguments": "{{n}}", "environment": "", "replaces": ""}
    answer = me.post(reverse("template_new"), body | rows({"name": "n", "kind": "integer", "default": "many"}))
    assert answer.status_code == 422
    assert "n is a whole number" in answer.context["rows"].forms[0].errors["default"][0]
    answer = me.post(reverse("template_new"), body | {"environment": "A\nB=1"} | rows({"name": "n"}))
    assert answer.context["form"].errors["environment"] == ["A has no value. Write A=value."]


def test_a_template_is_edited_as_a_new_revision_and_removed(world, ada, me):
    template = template_of(world, ada)
    address = reverse("template_edit", args=[template.pk])
    assert me.get(address).status_code == 200
    body = {"name": "other", "description": "", "arguments": "{{lr}}", "environment": ""}
    saved = me.post(address, body | rows({"name": "lr", "kind": "number"}))
    assert saved.status_code == 302
    template.refresh_from_db()
    assert (template.name, template.revision) == ("other", 2)
    me.post(reverse("template_delete", args=[template.pk]))
    assert not JobTemplate.objects.exists()


def test_the_launch_form_opens_with_a_template_and_is_saved_as_its_next_revision(world, ada, me):
    template = template_of(world, ada)
    page = me.get(reverse("template_in_form", args=[template.pk]))
    assert page.status_code == 200
    assert "--lr={{lr}}" in page.content.decode()
    spec = world.spec_json(ada)
    form = {
        "name": "digits", "strategy": "single", "code": spec["code"], "runs": "file", "entry_point": "train.py",
        "namespace": "ada", "engine": "staged", "arguments": "{{lr}}\n{{note}}", "roles-worker-replicas": "1",
        "roles-worker-cpu": "2", "roles-worker-memory": "1Gi",
    }  # fmt: skip
    asked = me.post(reverse("template_from_form"), form)
    assert asked.status_code == 200, asked.content.decode()[:3000]
    assert "A new revision of nightly" in asked.content.decode()
    body = {
        "spec": asked.context["spec"], "engine": "staged", "in": "ada", "name": "nightly", "arguments": "{{lr}}",
        "environment": "", "replaces": str(template.pk), **rows({"name": "lr", "kind": "number", "default": "0.5"}),
    }  # fmt: skip
    assert me.post(reverse("template_new"), body).status_code == 302
    template.refresh_from_db()
    assert template.revision == 2
    assert TemplateRevision.objects.get(number=2).spec["strategy"] == "single"


def test_the_launch_form_has_the_newest_of_what_a_template_follows_and_says_what_is_gone(world, ada, bob, me):
    old, fixed, gone = (world.dataset_version(ada, {"a.csv": "x"}) for _ in range(3))
    newer = world.dataset_version(ada, {"a.csv": "y"})
    inputs = [{"dataset_version": str(one.pk), "name": f"d{at}"} for at, one in enumerate((old, old, fixed, gone))]
    template = template_of(world, ada, spec={"inputs": inputs}, latest=["inputs.0"])
    DatasetVersion.objects.filter(pk=newer.pk).update(parent=old.parent, number=2)
    DatasetVersion.objects.filter(pk=gone.pk).delete()
    page = me.get(reverse("template_in_form", args=[template.pk]))
    chosen = [row["dataset_version"].value() for row in page.context["form"].inputs.forms]
    assert chosen[:4] == [str(newer.pk), str(old.pk), str(fixed.pk), str(gone.pk)]
    assert f"{gone.parent.name}, version 1 was removed" in page.content.decode()
    assert page.content.decode().count(f'value="{fixed.pk}" selected') == 1
    me.force_login(bob)
    assert me.get(reverse("template_in_form", args=[template.pk])).status_code == 404


def test_what_is_no_job_yet_goes_back_to_the_launch_form(world, ada, me):
    answer = me.post(reverse("template_from_form"), {"name": "x", "strategy": "single", "namespace": "ada"})
    assert answer.status_code == 422
    assert "The job is not complete" in answer.content.decode()


def test_a_schedule_is_made_by_the_page_with_easy_choices(world, ada, me):
    template = template_of(world, ada)
    address = f"{reverse('schedule_new')}?template={template.pk}"
    assert me.get(address).status_code == 200
    body = {
        "name": "weekly", "every": "weekly", "at": "06:30", "weekday": "1", "day": "1", "cron": "",
        "time_zone": "Europe/Berlin", "starts_at": "2027-02-01T00:00", "ends_at": "", "overlap": "queue",
        "grace": "3600", "keeps": "5", "p-lr": "0.5", "p-note": "",
    }  # fmt: skip
    made = me.post(address, body)
    schedule = Schedule.objects.get()
    assert made.url == reverse("schedule_page", args=[schedule.pk])
    assert (schedule.cron, schedule.overlap, schedule.keeps) == ("30 6 * * 1", "queue", 5)
    assert schedule.starts_at.isoformat() == "2027-01-31T23:00:00+00:00", "midnight in Berlin"
    assert schedule.values == {"lr": 0.5, "note": ""}
    edit = reverse("schedule_edit", args=[schedule.pk])
    assert me.get(edit).context["form"]["starts_at"].value() == "2027-02-01T00:00"
    refused = me.post(edit, body | {"every": "custom", "cron": "* * * * *"})
    assert (refused.status_code, "cron" in refused.context["form"].errors) == (422, True)
    assert me.post(edit, body | {"every": "custom", "cron": "0 5 * * *"}).status_code == 302
    schedule.refresh_from_db()
    assert schedule.cron == "0 5 * * *"


def test_the_next_times_are_shown_while_typing(me):
    query = {"every": "daily", "at": "02:30", "time_zone": "Asia/Tokyo", "weekday": "1", "day": "1"}
    shown = me.get(reverse("schedule_times_part"), query).content.decode()
    assert shown.count("02:30 JST") == 5
    assert "no such time zone" in me.get(reverse("schedule_times_part"), query | {"time_zone": "x"}).content.decode()


def test_a_schedule_is_paused_resumed_run_and_removed_by_its_page(world, ada, me):
    schedule = schedule_of(template_of(world, ada), ada)
    page = reverse("schedule_page", args=[schedule.pk])
    assert "No runs yet" in me.get(page).content.decode()
    me.post(reverse("schedule_pause_form", args=[schedule.pk]))
    assert "ada paused it" in me.get(page).content.decode()
    me.post(reverse("schedule_resume_form", args=[schedule.pk]))
    me.post(reverse("schedule_run_form", args=[schedule.pk]))
    assert ScheduleRun.objects.get().job.name == "digits"
    assert "Run by hand" in me.get(page).content.decode()
    assert schedule.name in me.get(reverse("schedules_page")).content.decode()
    me.post(reverse("schedule_delete", args=[schedule.pk]))
    assert not Schedule.objects.exists()
    assert "No schedules yet" in me.get(reverse("schedules_page")).content.decode()
    assert "No templates yet" not in me.get(reverse("templates_page")).content.decode()


def test_lists_take_few_queries(world, ada, me, django_assert_max_num_queries):
    template = template_of(world, ada)
    for number in range(5):
        schedule_of(template, ada, name=f"n{number}")
    me.get("/jobs/")
    for name in ("templates_page", "schedules_page"):
        with django_assert_max_num_queries(8):
            me.get(reverse(name))
    with django_assert_max_num_queries(12):
        me.get(reverse("template_page", args=[template.pk]))
    with django_assert_max_num_queries(12):
        me.get(reverse("schedule_page", args=[Schedule.objects.first().pk]))
