"""Every list needs at most 8 statements of the database, every other address at most 12, with many rows of each kind.

Not here: how long they take with a large portal's rows (`tests/bench/full_portal.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.api.allowances import forget_all
from apps.notifications import broadcasts
from tests.integration.queries.multiplied import multiplied
from tests.integration.queries.one_of_each import one_of_each
from tests.integration.queries.walk import WALKERS, Asked, at_most, walk
from tests.integration.security.populated import Populated

TIMES = 3
_ENDS = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET TRANSACTION")
AT_LENGTH = (pytest.mark.long,)
"""Of those who see a part of what an administrator sees, a member is enough."""
_SHOWS = os.environ.get("YARDMASTER_STATEMENTS", "")
"""A part of addresses: their statements are printed (with `-s`)."""


@pytest.fixture
def many(admin, settings, tmp_path, monkeypatch) -> Populated:
    monkeypatch.setattr(broadcasts, "KEPT", 3600)  # else it is read again every ten seconds, whatever is asked then
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    populated = Populated(admin)
    one_of_each(populated)
    multiplied(TIMES)
    return populated


def _statements(
    populated: Populated, who: str, asked: Asked, committed: Callable[..., object]
) -> tuple[str, list[str]]:
    """The group, and the statements of the second time that it is asked: the first may note that it was read."""
    client = populated.client_of(who)
    forget_all()
    with transaction.atomic():
        with committed(execute=True):  # type: ignore[attr-defined]
            client.get(asked.path).close()
        with CaptureQueriesContext(connection) as found:
            answer = client.get(asked.path)
            body = b"" if answer.streaming else answer.content
        transaction.set_rollback(True)
    answer.close()
    assert answer.status_code < 500 or answer.status_code == 503, (who, asked)
    said = [one["sql"] for one in found.captured_queries if not one["sql"].startswith(_ENDS)]
    return asked.group(answer.headers.get("Content-Type", ""), body), said


@pytest.mark.django_db
@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("who", [pytest.param(one, marks=AT_LENGTH * (one == "manager")) for one in WALKERS])
def test_no_address_needs_more_statements_than_its_kind_may(many, who, django_capture_on_commit_callbacks):
    over = {}
    for asked in walk(many):
        if _SHOWS and _SHOWS not in asked.path:
            continue
        group, said = _statements(many, who, asked, django_capture_on_commit_callbacks)
        if _SHOWS:
            print(f"{len(said)} {group} {asked.path}", *(one[:200] for one in said), sep="\n    ")
        if len(said) > at_most(group):
            over[asked.path] = f"{len(said)} of {group}: {asked.route}"
    assert not over, "\n".join(f"{path}: {words}" for path, words in sorted(over.items()))


def test_what_is_copied_is_there_many_times(many):
    """The walk would find nothing wrong in empty lists."""
    from apps.datasets.models import Dataset
    from apps.jobs.models import Job, JobMetric, TaskFact
    from apps.namespaces.models import Membership, Namespace

    for kind in (Dataset, Job, JobMetric, TaskFact):
        assert kind.objects.count() > 2 * TIMES, kind
    assert Job.objects.filter(namespace=many.team).count() > 2 * TIMES
    assert TaskFact.objects.filter(job=many.job).count() > TIMES
    assert Namespace.objects.filter(owner=None).count() > TIMES
    assert Membership.objects.count() > TIMES
