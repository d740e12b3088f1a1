"""No list, and nothing that is done to many jobs, reads specifications: one may have hundreds of kilobytes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.jobs import services
from apps.jobs.models import JobAttempt, JobInput
from apps.jobs.selectors import attempts_of, versions_in_use
from tests.integration.pages.test_jobs_pages import make_job
from yardmaster.ids import new_id

pytestmark = pytest.mark.django_db
LISTS = [
    "/", "/jobs/", "/jobs/?where=all", "/jobs/?search=dig", "/api/v1/jobs/", "/api/v1/jobs/?phase=QUEUED", "/models/",
    "/find/?q=digits", "/namespaces/", "/api/v1/namespaces/", "/account/notifications/", "/api/v1/models/",
]  # fmt: skip


@pytest.fixture
def jobs(ada):
    found = [make_job(ada, phase=phase) for phase in ("QUEUED", "RUNNING", "FAILED", "SUCCEEDED", "STOPPED")]
    for job in found:
        JobAttempt.objects.create(job=job, number=1, spec=job.spec, queued_at=job.queued_at)
    return found


@pytest.fixture
def specs_read():
    """What was asked of the database's specifications within the block."""

    class Watch(CaptureQueriesContext):
        @property
        def statements(self) -> list[str]:
            return [
                one["sql"] for one in self.captured_queries if one["sql"].startswith("SELECT") and _reads(one["sql"])
            ]

    return Watch(connection)


def _reads(sql: str) -> bool:
    return any(f'"{table}"."{column}"' in sql for table, column in
               [("jobs_job", "spec"), ("jobs_job", "waiting"), ("jobs_jobattempt", "spec")])  # fmt: skip


@pytest.mark.parametrize("address", LISTS)
def test_a_list_reads_none(client, ada, jobs, specs_read, address):
    client.force_login(ada)
    with specs_read:
        assert client.get(address).status_code == 200
    assert specs_read.statements == []


@pytest.mark.parametrize("action", ["stop", "delete", "compare"])
def test_what_is_done_to_many_jobs_reads_none(client, ada, jobs, specs_read, action):
    client.force_login(ada)
    with specs_read:
        client.get("/jobs/rows/", {"job": [str(job.pk) for job in jobs]})
        client.post("/jobs/bulk/", {"job": [str(job.pk) for job in jobs], "action": action, "typed": "3 jobs"})
    assert specs_read.statements == []


def test_stopping_and_deleting_all_of_a_namespace_reads_none(ada, jobs, specs_read):
    with specs_read:
        services.jobs_stop_all(engines=["local"])
        services.jobs_stop_in(ada.personal_namespace, ada)
        services.jobs_delete_in(ada.personal_namespace, ada)
        assert list(attempts_of(jobs[2]))
    assert specs_read.statements == []


def test_whether_a_version_is_in_use_is_known_without_specifications(ada, jobs, specs_read):
    used, unused, of_an_ended_job = new_id(), new_id(), new_id()
    JobInput.objects.create(job=jobs[0], version=used)
    JobInput.objects.create(job=jobs[2], version=of_an_ended_job)
    with specs_read:
        assert versions_in_use([used, unused, of_an_ended_job]) == {used}
    assert specs_read.statements == []
