"""Quotas that change from one time to another, and what a new namespace may hold: by the pages and by the API."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.quota_schedules import MOST_OPEN, quota_schedules_sweep, schedules_create
from apps.audit.models import AuditEvent
from apps.errors import Invalid
from apps.namespaces.models import Namespace, Quota, ScheduledQuota
from apps.namespaces.services import team_create

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(admin, signed_in):
    return signed_in(admin)


@pytest.fixture
def vision(db):
    made = Namespace.objects.create(slug="vision")
    Quota.objects.create(namespace=made, gpus=2, cpu="1.5", extended={"rdma/hca": 2})
    return made


@pytest.fixture
def now():
    return timezone.now()


def quota(namespace):
    return Quota.objects.get(pk=namespace.pk)


def plan(namespace, admin, **options):
    now = timezone.now()
    said = {"starts": now + HOUR, "ends": now + 2 * HOUR, "reason": "The deadline", "changes": {"gpus": 8}}
    return schedules_create(namespace_ids=[namespace.pk], actor=admin, **said | options)[0]


class TestSchedules:
    def test_it_begins_and_ends_by_itself_and_each_is_recorded(self, vision, admin, now):
        plan(vision, admin, changes={"gpus": 8, "cpu": None, "extended": {"rdma/hca": None, "amd.com/gpu": 4}})
        assert quota_schedules_sweep(now + HOUR / 2) == 0
        assert quota(vision).gpus == 2
        assert quota_schedules_sweep(now + 1.5 * HOUR) == 1
        held = quota(vision)
        assert (held.gpus, held.cpu, held.extended) == (8, None, {"amd.com/gpu": 4})
        assert quota_schedules_sweep(now + 1.5 * HOUR) == 0, "it has begun already"
        assert quota_schedules_sweep(now + 3 * HOUR) == 1
        held = quota(vision)
        assert (held.gpus, float(held.cpu), held.extended, held.usual) == (2, 1.5, {"rdma/hca": 2}, {})
        events = AuditEvent.objects.filter(namespace_id=vision.pk).order_by("pk")
        assert [one.action for one in events] == ["quota.schedule", "quota.schedule_begin", "quota.schedule_end"]
        assert [one.actor_id for one in events] == [admin.pk, None, None]
        begin = events[1].facts
        assert (begin["before"]["gpus"], begin["after"]["gpus"], begin["reason"]) == (2, 8, "The deadline")
        reasons = list(Quota.history.filter(namespace=vision).values_list("history_change_reason", flat=True)[:2])
        assert reasons[0] == "A scheduled change ended: The deadline"
        assert reasons[1].startswith("Until ")

    def test_without_a_start_it_is_in_force_at_once(self, vision, admin):
        plan(vision, admin, starts=None)
        assert (quota(vision).gpus, quota(vision).usual) == (8, {"gpus": 2})

    def test_the_table_of_quotas_says_what_is_in_force_and_what_is_to_come(self, vision, admin, desk, now):
        assert "changed until" not in desk.get("/admin/quotas/").content.decode()
        plan(vision, admin, starts=None)
        plan(vision, admin, starts=now + 3 * HOUR, ends=now + 4 * HOUR)
        page = desk.get("/admin/quotas/").content.decode()
        assert f"changed until {now + 2 * HOUR:%-d %b %H:%M}" in page
        assert f"changes from {now + 3 * HOUR:%-d %b %H:%M}" in page
        assert 'href="/admin/quotas/scheduled/?namespace=vision"' in page

    def test_an_edit_meanwhile_changes_what_holds_afterwards(self, vision, admin, desk, now):
        plan(vision, admin, starts=None)
        shown = desk.get(f"/namespaces/{vision.pk}/").context["quota_form"].initial
        assert shown["gpus"] == "2"
        desk.post(f"/namespaces/{vision.pk}/quota/", {**shown, "gpus": "3", "reason": "More"})
        assert (quota(vision).gpus, quota(vision).usual) == (8, {"gpus": 3})
        page = desk.get(f"/namespaces/{vision.pk}/holders/").content.decode()
        assert "GPUs after the scheduled change" in page
        quota_schedules_sweep(now + 3 * HOUR)
        assert (quota(vision).gpus, quota(vision).usual) == (3, {})

    def test_the_change_made_last_counts_and_when_it_is_cancelled_the_other_does(self, vision, admin, office):
        plan(vision, admin, starts=None)
        last = plan(vision, admin, starts=None, changes={"gpus": 4})
        assert quota(vision).gpus == 4
        address = f"/api/v1/quotas/scheduled/{last.pk}/"
        assert office.get(address).json()["in_force"] is True
        assert office.delete(address).status_code == 204
        assert quota(vision).gpus == 8
        late = office.delete(address)
        assert (late.status_code, late.json()["code"]) == (409, "schedule_over")
        cancelled = AuditEvent.objects.get(action="quota.schedule_cancel")
        assert (cancelled.actor_id, cancelled.facts["begun"]) == (admin.pk, True)

    def test_one_that_an_edit_put_in_force_before_a_sweep_noted_it_goes_when_it_is_cancelled(
        self, vision, admin, desk, office, now
    ):
        one = plan(vision, admin)
        ScheduledQuota.objects.filter(pk=one.pk).update(starts_at=now - HOUR)
        shown = desk.get(f"/namespaces/{vision.pk}/").context["quota_form"].initial
        desk.post(f"/namespaces/{vision.pk}/quota/", {**shown, "gpus": "3", "reason": "More"})
        assert (quota(vision).gpus, quota(vision).usual) == (8, {"gpus": 3})
        assert office.delete(f"/api/v1/quotas/scheduled/{one.pk}/").status_code == 204
        assert (quota(vision).gpus, quota(vision).usual) == (3, {})

    def test_one_that_no_worker_saw_is_over_without_having_been_in_force(self, vision, admin, now):
        one = plan(vision, admin)
        quota_schedules_sweep(now + 5 * HOUR)
        one.refresh_from_db()
        assert (one.begun_at, one.over_at is not None, quota(vision).gpus) == (None, True, 2)

    @pytest.mark.parametrize(
        ("starts", "ends", "field", "code"),
        [
            (2, 1, "ends", "before_start"),
            (-1, 1, "starts", "past"),
            (-1, -0.5, "starts", "past"),
            (1, 30_000, "ends", "too_far"),
            (None, -1, "ends", "past"),
        ],
    )
    def test_times_that_will_not_do_are_refused_by_field(self, vision, office, now, starts, ends, field, code):
        body = {
            "namespaces": [str(vision.pk)], "changes": {"gpus": 8}, "reason": "x", "ends": now + ends * HOUR,
            "starts": None if starts is None else now + starts * HOUR,
        }  # fmt: skip
        answer = office.post("/api/v1/quotas/scheduled/", body, format="json")
        assert answer.status_code == 400
        assert [(one["field"], one["code"]) for one in answer.json()["errors"]] == [(field, code)]
        assert not ScheduledQuota.objects.exists()

    def test_a_namespace_has_only_so_many(self, vision, admin):
        for _ in range(MOST_OPEN):
            plan(vision, admin)
        with pytest.raises(Invalid, match="most that it may have"):
            plan(vision, admin)

    def test_many_at_once_begin_in_few_steps(self, admin, now, django_assert_max_num_queries):
        teams = [Namespace.objects.create(slug=f"t{at}") for at in range(20)]
        ends = now + 2 * HOUR
        schedules_create(
            namespace_ids=[one.pk for one in teams], changes={"gpus": 8}, starts=now + HOUR, ends=ends,
            reason="x", actor=admin,
        )  # fmt: skip
        assert quota_schedules_sweep(now + 1.5 * HOUR) == 20
        assert Quota.objects.filter(namespace__in=teams, gpus=8).count() == 20
        with django_assert_max_num_queries(1):
            quota_schedules_sweep(now + 1.6 * HOUR)


class TestPages:
    def test_it_is_previewed_scheduled_listed_shown_to_members_and_cancelled(self, vision, desk, ada, client, now):
        ends = f"{now + 48 * HOUR:%Y-%m-%dT%H:%M}"
        typed = {"namespace": str(vision.pk), "gpus": "8", "ends": ends, "reason": "The deadline"}
        preview = desk.post("/admin/quotas/edit/", typed)
        text = preview.content.decode()
        assert "The new limits hold from now until" in text
        assert not ScheduledQuota.objects.exists()
        kept = dict(preview.context["kept"])
        done = desk.post("/admin/quotas/edit/", typed | kept | {"seen": preview.context["plan"].seen, "apply": "1"})
        assert done.status_code == 302
        assert quota(vision).gpus == 8
        listed = desk.get("/admin/quotas/scheduled/").content.decode()
        assert "in force" in listed
        assert "The deadline" in listed
        vision.memberships.create(user=ada, role="viewer")
        client.force_login(ada)
        page = " ".join(client.get(f"/namespaces/{vision.pk}/").content.decode().split())
        assert "GPUs: <strong>8</strong> until <time" in page
        assert "</time>, then <strong>2</strong></li>" in page
        assert "Show or cancel" not in page
        assert client.get(f"/api/v1/namespaces/{vision.pk}/quota/scheduled/").json()["results"][0]["limits"] == {
            "gpus": 8
        }
        client.force_login(User.objects.get(username="admin"))
        row = ScheduledQuota.objects.get()
        assert client.post(f"/admin/quotas/scheduled/{row.pk}/cancel/").status_code == 302
        assert quota(vision).gpus == 2
        assert "No scheduled changes" in client.get("/admin/quotas/scheduled/").content.decode()

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ({"starts": "2090-01-01T00:00"}, "A change with a start needs an end"),
            ({"ends": "2001-01-01T00:00"}, "The end is in the past"),
            ({"ends": "tomorrow"}, "valid date"),
            ({"defaults": "on"}, "Either fill in limits"),
        ],
    )
    def test_what_will_not_do_is_said_at_its_field_and_what_was_typed_is_kept(self, vision, desk, typed, said):
        answer = desk.post("/admin/quotas/edit/", {"namespace": str(vision.pk), "gpus": "8", "reason": "x"} | typed)
        text = answer.content.decode()
        assert said in text
        assert 'value="8"' in text
        assert not ScheduledQuota.objects.exists()

    def test_others_are_refused(self, vision, admin, ada, signed_in, web):
        one = plan(vision, admin)
        for address in ("/admin/quotas/scheduled/", "/admin/quotas/defaults/"):
            assert web.get(address).status_code == 403
        assert web.post(f"/admin/quotas/scheduled/{one.pk}/cancel/").status_code == 403
        assert signed_in(ada).get(f"/api/v1/namespaces/{vision.pk}/quota/scheduled/").status_code == 404


class TestDefaults:
    def test_they_are_the_settings_until_they_are_changed_and_then_what_new_namespaces_get(
        self, office, admin, settings, vision
    ):
        settings.YARDMASTER_DEFAULT_QUOTA = {"cpu": 2.0, "memory": None, "gpus": 1, "storage": None, "running_jobs": 3}
        kinds = office.get("/api/v1/quotas/defaults/").json()
        assert [one["kind"] for one in kinds] == ["personal", "team"]
        assert {(one["limits"]["cpu"], one["changed_at"]) for one in kinds} == {(2.0, None)}
        body = {"cpu": "2500m", "memory": "4Gi", "gpus": None, "storage": None, "running_jobs": 5, "sessions": 2}
        body |= {"extended": {"amd.com/gpu": 1}, "reason": "The new cluster"}
        assert office.put("/api/v1/quotas/defaults/team/", body, format="json").status_code == 200
        team = team_create(slug="speech", title="", manager=admin, actor=admin)
        made = quota(team)
        assert (float(made.cpu), made.memory, made.gpus, made.sessions) == (2.5, 4 << 30, None, 2)
        assert made.extended == {"amd.com/gpu": 1}
        person = User.objects.create_user("eve")
        assert quota(person.personal_namespace).gpus == 1, "personal ones are told apart"
        assert quota(vision).gpus == 2, "those that exist keep theirs"
        event = AuditEvent.objects.get(action="quota.defaults")
        assert (event.facts["before"]["cpu"], event.facts["after"]["cpu"]) == (2.0, 2.5)
        assert event.facts["reason"] == "The new cluster"
        assert office.put("/api/v1/quotas/defaults/other/", body, format="json").status_code == 404

    def test_the_page_has_a_form_for_each_kind_and_says_what_is_wrong(self, desk):
        shown = desk.get("/admin/quotas/defaults/")
        assert shown.content.decode().count("from the settings") == 2
        refused = desk.post("/admin/quotas/defaults/", {"personal-kind": "personal", "personal-cpu": "many"})
        assert refused.status_code == 400
        text = refused.content.decode()
        assert "Expected a number of cores" in text
        assert 'value="many"' in text
        desk.post("/admin/quotas/defaults/", {"personal-kind": "personal", "personal-cpu": "3", "personal-reason": "x"})
        assert quota(User.objects.create_user("eve").personal_namespace).cpu == 3

    def test_selected_namespaces_are_given_them(self, vision, desk, office):
        body = {"cpu": 4, "memory": None, "gpus": None, "storage": None, "running_jobs": 7, "reason": "x"}
        office.put("/api/v1/quotas/defaults/team/", body, format="json")
        typed = {"namespace": str(vision.pk), "defaults": "on", "reason": "All alike"}
        preview = desk.post("/admin/quotas/edit/", typed)
        moved = {one.name: (one.before, one.after) for one in preview.context["plan"].planned[0].moved}
        assert moved == {
            "CPU cores": (1.5, 4), "GPUs": (2, None), "Concurrent jobs": (None, 7), "rdma/hca": (2, None),
        }  # fmt: skip
        desk.post("/admin/quotas/edit/", typed | {"seen": preview.context["plan"].seen, "apply": "1"})
        made = quota(vision)
        assert (made.cpu, made.gpus, made.running_jobs, made.extended) == (4, None, 7, {})
        both = {"namespaces": [str(vision.pk)], "defaults": True, "changes": {"cpu": 1}, "reason": "x"}
        assert office.post("/api/v1/quotas/bulk/", both, format="json").status_code == 400
