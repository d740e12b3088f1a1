"""The report of a month on the command line, against a real portal."""

from __future__ import annotations

import pytest

from tests.real.portal import RealPortal

pytestmark = pytest.mark.slow

_HELD = """
import datetime, django
django.setup()
from apps.jobs.models import Reservation
from yardmaster.ids import new_id
begin = datetime.datetime(2020, 2, 10, tzinfo=datetime.UTC)
Reservation.objects.create(
    job_id=new_id(), job_name="train", namespace_id=new_id(), namespace_slug="vision", owner_name="grace", attempt=1,
    tasks=1, cpu=2, memory=4 << 30, gpus=0, extended={}, role="worker", engine="local", reserved_at=begin,
    released_at=begin + datetime.timedelta(hours=3),
)
"""


def test_an_administrator_reads_the_report_of_a_month(yardmaster, light_portal: RealPortal):
    light_portal.script(_HELD)
    report = ("usage", "month", "2020-02")
    lines = yardmaster(*report).out.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [[name, "6.00", "12.00", "0.00"] for name in ("vision", "total")]
    assert "grace" in yardmaster(*report, "--by-user").out
    assert yardmaster(*report, "--json").json["total"]["cpu_hours"] == 6
    assert yardmaster(*report, "--csv").out.splitlines()[0].startswith("namespace,cpu_hours,")
    table = yardmaster(*report, "--csv", "--by-user").out.splitlines()
    assert table[0].startswith("namespace,user,cpu_hours,")
    assert table[1].startswith("vision,grace,6.0")
    for wrong in ("../2020-02", "2999-01"):
        assert yardmaster("usage", "month", wrong).code == 1
    theirs = light_portal.token_of("heidi")
    assert yardmaster(*report, YARDMASTER_TOKEN=theirs).code == 1
