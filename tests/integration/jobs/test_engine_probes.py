"""What is tried on engines: once for each setting, told in words, and no job handed to where it would wait in vain."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.jobs.engines.configured import registry
from apps.jobs.engines.probes import (
    AFTER_FAILURE,
    AFTER_SUCCESS,
    SURE_AFTER,
    known_of,
    next_of,
    probes_sweep,
    refuse_unreachable,
)
from apps.jobs.models import EngineProbe
from celery_worker.tasks import network_is_due_again, probe_engines
from tests.integration.jobs.trying import ENFORCED, WELL, TryingEngine
from tests.integration.jobs.world import World
from yardmaster.engines.base import Finding, Probe
from yardmaster.errors import Misconfigured, Unavailable

pytestmark = pytest.mark.django_db
BROKEN = Finding(False, "Pods do not reach the portal at http://10.0.0.1:8080: timed out.", "Set YARDMASTER_HOST.")
DOUBT = Finding(None, "It is not known whether pods reach the portal. The image could not be pulled.")


@pytest.fixture
def engine(settings) -> TryingEngine:
    settings.YARDMASTER_ENGINES = {"trying": engine_setting()}
    settings.YARDMASTER_DEFAULT_ENGINE = "trying"
    settings.TASK_URL = "http://10.0.0.1:8080"
    settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = True
    made = registry().get("trying")
    assert isinstance(made, TryingEngine)
    return made


def engine_setting(**options: str) -> dict:
    return {"class": "tests.integration.jobs.trying.TryingEngine", "options": options}


def swept(after: timedelta = timedelta()) -> int:
    """How many probes were made until none was due."""
    now = timezone.now() + after
    return len(list(iter(lambda: probes_sweep(clock=lambda: now), False)))


def reach() -> EngineProbe:
    return EngineProbe.objects.get(probe=Probe.REACH)


def broken(engine: TryingEngine) -> None:
    engine.says = BROKEN
    for minute in range(SURE_AFTER):
        swept(timedelta(minutes=minute))


class TestWhenItIsTried:
    def test_before_the_first_job_and_not_again_while_it_is_well(self, engine):
        for _ in range(4):  # one probe each
            probe_engines()
        assert engine.networks == 1
        assert engine.asked == ["http://10.0.0.1:8080"]
        swept(AFTER_SUCCESS + timedelta(seconds=1))
        assert len(engine.asked) == 2

    def test_again_when_the_address_changes(self, engine, settings):
        swept()
        settings.TASK_URL = "http://10.0.0.2:8080"
        assert known_of("trying", Probe.REACH) is None
        swept()
        assert engine.asked == ["http://10.0.0.1:8080", "http://10.0.0.2:8080"]

    def test_again_when_the_engine_s_options_change(self, engine, settings):
        swept()
        settings.YARDMASTER_ENGINES = {"trying": engine_setting(note="other")}
        assert known_of("trying", Probe.REACH) is None
        swept()
        assert registry().get("trying").asked == ["http://10.0.0.1:8080"]  # type: ignore[attr-defined]

    def test_by_one_worker_of_several(self, engine):
        swept()
        row = reach()
        EngineProbe.objects.update(next_at=timezone.now() + timedelta(minutes=2))
        assert swept() == 0
        assert reach().tried_at == row.tried_at

    def test_the_digest_tells_nothing_of_the_options(self, engine, settings):
        settings.YARDMASTER_ENGINES = {"trying": engine_setting(note="a secret")}
        swept()
        assert "secret" not in reach().settings_digest


class TestWhatIsKnown:
    @pytest.mark.parametrize("probe", AFTER_FAILURE)
    def test_one_failure_is_none(self, probe):
        failures, is_well, _ = next_of(probe, 0, False)
        assert is_well is None
        assert next_of(probe, failures, False)[1:] == (False, AFTER_FAILURE[probe])

    def test_a_success_ends_all_doubt_and_doubt_no_success(self):
        assert next_of(Probe.REACH, 5, True)[:2] == (0, True)
        assert next_of(Probe.REACH, 1, None)[:2] == (0, None)

    @pytest.mark.parametrize("said", [WELL, DOUBT, Unavailable("away"), Misconfigured("no right")])
    def test_nothing_is_held_up_but_by_two_failures(self, engine, said):
        engine.says = said
        swept()
        swept(timedelta(hours=1))
        refuse_unreachable("trying")

    def test_two_failures_are_told_with_the_address_and_the_remedy(self, engine):
        broken(engine)
        with pytest.raises(Misconfigured, match=r"http://10\.0\.0\.1:8080") as refused:
            refuse_unreachable("trying")
        assert "YARDMASTER_HOST" in refused.value.remedy


class TestJobs:
    def test_a_job_is_not_handed_to_where_its_tasks_would_wait_in_vain_and_goes_on_once_it_is_mended(
        self, engine, ada, sent
    ):
        broken(engine)
        world = World(engine)
        job = world.look(world.launch(ada))
        assert engine.submits == []
        assert (job.reason, job.message) == ("Misconfigured", BROKEN.message)
        assert "YARDMASTER_HOST" in job.remedy
        engine.says = WELL
        swept(timedelta(hours=1))
        world.now += timedelta(minutes=2)
        world.look(job)
        assert len(engine.submits) == 1

    def test_the_engine_is_listed_with_it_and_the_launch_page_says_so(self, engine, ada, client, signed_in):
        broken(engine)
        (shown,) = signed_in(ada).get("/api/v1/engines/").json()["results"]
        assert (shown["allowed"], shown["tasks_reach_portal"]) == (True, False)
        assert shown["message"] == BROKEN.message
        client.force_login(ada)
        page = client.get(reverse("launch_page")).content.decode()
        assert "launch-unreached" in page
        assert "timed out" in page
        engine.says = WELL
        swept(timedelta(hours=1))
        assert "launch-unreached" not in client.get(reverse("launch_page")).content.decode()


OPEN = Finding(False, "The cluster does not enforce network policies.", "Run a network that enforces them.")


class TestTheNetwork:
    def test_it_is_tried_with_every_start_of_a_worker_and_the_way_to_the_portal_is_not(self, engine):
        swept()
        network_is_due_again()
        swept()
        assert (engine.networks, len(engine.asked)) == (2, 1)
        swept()
        assert engine.networks == 2

    def test_what_is_not_enforced_is_told_to_administrators_in_the_log_and_holds_up_no_job(
        self, engine, ada, admin, signed_in, client, caplog
    ):
        engine.says_of_network = OPEN
        swept()
        swept(timedelta(minutes=1))
        assert "Engine trying: The cluster does not enforce network policies. Run a network" in caplog.text
        refuse_unreachable("trying")
        (shown,) = signed_in(admin).get("/api/v1/engines/").json()["results"]
        assert (shown["allowed"], shown["network_enforced"], shown["message"]) == (True, False, "")
        client.force_login(admin)
        page = client.get(reverse("engines_page")).content.decode()
        assert "alert-danger" in page
        assert OPEN.remedy in page
        (shown,) = signed_in(ada).get("/api/v1/engines/").json()["results"]
        assert shown["network_enforced"] is None
        client.force_login(ada)
        assert OPEN.message not in client.get(reverse("engines_page")).content.decode()

    def test_what_is_enforced_is_said_too_with_when_it_was_tried(self, engine, admin, client):
        client.force_login(admin)
        assert ENFORCED.message not in client.get(reverse("engines_page")).content.decode()
        swept()
        page = client.get(reverse("engines_page")).content.decode()
        assert ENFORCED.message in page
        assert "alert-" not in page

    def test_what_could_not_be_told_is_no_verdict(self, engine, admin, signed_in):
        engine.says_of_network = Unavailable("The cluster did not answer.")
        swept()
        (shown,) = signed_in(admin).get("/api/v1/engines/").json()["results"]
        assert shown["network_enforced"] is None
        assert "did not answer" in EngineProbe.objects.get(probe=Probe.NETWORK).message
