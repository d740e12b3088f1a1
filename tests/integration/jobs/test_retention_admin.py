"""Rules of retention, changed by page and by API: preview, reason, audit, and who may."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.jobs.labels import job_pin
from apps.jobs.models import Job, RetentionRule
from apps.jobs.worker.retention import retention_sweep
from tests.integration.jobs.test_retention_pass import MONTH, ended, joins, rule
from yardmaster.lifecycle.retention import Kind

PAGE, API = "/admin/retention/", "/api/v1/retention/"
RULE = {"kind": "logs", "days": 30, "reason": "the disk is full"}


@pytest.fixture
def console(client, admin):
    client.force_login(admin)
    return client


@pytest.fixture
def api(admin, signed_in):
    return signed_in(admin)


def aged(job: Job, days: int = 40) -> Job:
    Job.objects.filter(pk=job.pk).update(decided_at=timezone.now() - timedelta(days=days))
    return job


def test_a_preview_counts_jobs_bytes_and_ends_and_changes_nothing(world, ada, bob, api):
    old, older, pinned, young = (ended(world, ada, files=False, name=name) for name in "abcd")
    aged(old), aged(older, 90), aged(pinned), aged(young, 3)
    joins(bob, pinned)
    job_pin(user=bob, job=pinned)
    answer = api.post(f"{API}preview/", {"kind": "logs", "days": 30}, format="json")
    found = answer.json()
    assert (found["jobs"], found["namespaces"], found["is_cut"]) == (2, 1, False)
    assert found["bytes"] > 0
    assert found["oldest"] < found["newest"]
    assert not RetentionRule.objects.exists()
    for_ever = api.post(f"{API}preview/", {"kind": "logs", "days": None}, format="json").json()
    assert (for_ever["jobs"], for_ever["oldest"]) == (0, None)
    rule("logs", None, namespace=old.namespace)
    found = api.post(f"{API}preview/", {"kind": "logs", "days": 30}, format="json").json()
    assert found["jobs"] == 0, "the namespace has a rule of its own"


def test_a_preview_counts_what_a_pass_then_removes(world, ada, api):
    jobs = [aged(ended(world, ada, name=name)) for name in "abc"]
    for kind in Kind:
        wish = {"kind": kind.value, "days": 30, "newest": 1}
        found = api.post(f"{API}preview/", wish, format="json").json()
        api.put(API, {**wish, "reason": "space"}, format="json")
        assert retention_sweep(timezone.now()) == found["jobs"] > 0, kind
        told = AuditEvent.objects.filter(action="retention.remove").latest("pk").facts
        assert (told["jobs"], told["bytes"]) == (found["jobs"], found["bytes"])
        RetentionRule.objects.all().delete()
    assert len(jobs) == 3


def test_a_rule_is_set_and_changed_with_before_and_after_in_the_audit(world, ada, api):
    assert api.get(API).json() == []
    made = api.put(API, {**RULE, "tags": ["Paper"]}, format="json")
    assert made.status_code == 200, made.json()
    assert (made.json()["days"], made.json()["tags"], made.json()["namespace"]) == (30, ["paper"], None)
    api.put(API, {**RULE, "days": 60}, format="json")
    slug = ended(world, ada, files=False).namespace.slug
    api.put(API, {**RULE, "days": 7, "namespace": slug}, format="json")
    assert [(one["namespace"], one["days"]) for one in api.get(API).json()] == [(None, 60), (slug, 7)]
    facts = [one.facts for one in AuditEvent.objects.filter(action="retention.change").order_by("pk")]
    assert [(one["days_before"], one["days"]) for one in facts] == [(None, 30), (30, 60), (None, 7)]
    assert facts[0]["reason"] == "the disk is full"
    own = api.get(API).json()[1]["id"]
    assert api.delete(f"{API}{own}/").status_code == 400
    assert api.delete(f"{API}{own}/?reason=enough").status_code == 204
    assert api.delete(f"{API}{own}/?reason=enough").status_code == 404
    assert AuditEvent.objects.get(action="retention.reset").facts["days_before"] == 7


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 10**9}, "days"),
        ({"newest": -1}, "newest"),
        ({"tags": ["x" * 41]}, "tags"),
        ({"tags": ["x"] * 21}, "tags"),
        ({"kind": "audit"}, "kind"),
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 301}, "reason"),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_its_field(world, api, wrong, field):
    answer = api.put(API, {**RULE, **wrong}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"].startswith(field)
    assert not RetentionRule.objects.exists()


@pytest.mark.parametrize("wrong", [{"days": "0"}, {"newest": "-1"}, {"reason": ""}, {"namespace": "nowhere"}])
def test_the_form_names_what_is_wrong_and_saves_nothing(world, console, wrong):
    answer = console.post(PAGE, {**RULE, **wrong, "save": "1"})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == list(wrong)
    assert not RetentionRule.objects.exists()


def test_only_administrators_may_and_an_unknown_namespace_is_not_found(world, ada, api, client, signed_in):
    assert api.put(API, {**RULE, "namespace": "nowhere"}, format="json").status_code == 404
    me = signed_in(ada)
    assert me.get(API).status_code == 403
    assert me.put(API, RULE, format="json").status_code == 403
    assert me.post(f"{API}preview/", {"kind": "logs", "days": 1}, format="json").status_code == 403
    client.force_login(ada)
    assert client.get(PAGE).status_code == client.post(PAGE, {**RULE, "save": "1"}).status_code == 403
    assert not RetentionRule.objects.exists()


def test_the_page_previews_before_it_saves_and_lists_what_was_removed(
    world, ada, console, django_assert_max_num_queries
):
    job = aged(ended(world, ada, files=False))
    assert "Everything is kept" in console.get(PAGE).content.decode()
    said = {"kind": "logs", "days": "30", "reason": "the disk is full", "spares_models": "on", "tags": "paper, base"}
    with django_assert_max_num_queries(12):
        preview = console.post(PAGE, said).content.decode()
    assert "Save the rule" in preview
    assert 'name="tags" value="paper, base"' in preview
    assert not RetentionRule.objects.exists(), "a preview saves nothing"
    assert console.post(PAGE, {**said, "save": "1"}).status_code == 302
    made = RetentionRule.objects.get()
    assert (made.days, made.tags, made.spares_models, made.only_archived) == (30, ["base", "paper"], True, False)
    retention_sweep(timezone.now())
    with django_assert_max_num_queries(12):
        page = console.get(f"{PAGE}?rule={made.pk}").content.decode()
    assert job.namespace.slug in page
    assert 'value="30"' in page, "the form has the rule to be changed"
    reset = f"{PAGE}{made.pk}/reset/"
    assert console.get(reset).status_code == 200
    assert console.post(reset, {"reason": ""}).status_code == 400
    assert console.post(reset, {"reason": "enough"}).status_code == 302
    assert not RetentionRule.objects.exists()


def test_the_api_of_a_job_says_what_is_kept_until_when_and_what_went(world, ada, bob, signed_in):
    job = ended(world, ada, files=False)
    me = signed_in(ada)
    kept = f"/api/v1/jobs/{job.pk}/kept/"
    assert [one["until"] for one in me.get(kept).json()] == [None] * 3
    rule("logs")
    (logs, *_) = me.get(kept).json()
    assert (logs["kind"], logs["spared"], logs["removed_at"]) == ("logs", None, None)
    assert datetime.fromisoformat(logs["until"]) == job.decided_at + timedelta(days=30)
    job_pin(user=ada, job=job)
    assert me.get(kept).json()[0]["spared"] == "pinned"
    job.pins.all().delete()
    retention_sweep(world.now + MONTH)
    (logs, *_) = me.get(kept).json()
    assert (logs["until"], logs["removed_to"]) == (None, 1)
    assert logs["removed_by"] == "kept for 30 days (rule of the portal)"
    assert signed_in(bob).get(kept).status_code == 404
