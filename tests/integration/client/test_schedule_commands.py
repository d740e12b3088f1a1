"""`yardmaster templates` and `schedules` against a real portal, and the SDK with them."""

from __future__ import annotations

import asyncio
import json

import pytest

from yardmaster_client.aio import AsyncYardmaster

pytestmark = pytest.mark.slow


def test_a_job_becomes_a_template_is_launched_and_scheduled(yardmaster, ada, job_file, script, tmp_path):
    launched = yardmaster("jobs", "launch", job_file, "--code", script, "--json")
    assert launched.code == 0, launched.err
    parameters = tmp_path / "parameters.json"
    parameters.write_text(json.dumps([{"name": "lr", "kind": "number", "default": 0.1, "maximum": 1}]))
    made = yardmaster(
        "templates", "create", "nightly", "--job", launched.json["id"], "--parameters", parameters,
        "--argument", "--lr={{lr}}", "--latest", "code", "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert made.json["latest"] == ["code"]
    assert "nightly" in yardmaster("templates", "list").out
    shown = yardmaster("templates", "show", "nightly").out
    assert all(word in shown for word in ("lr", "number", "to 1", "--lr={{lr}}"))
    refused = yardmaster("templates", "launch", "nightly", "--param", "lr=2")
    assert refused.code == 1
    assert "at most 1" in refused.err
    assert yardmaster("templates", "launch", "nightly", "--param", "lr").code == 2
    job = yardmaster("templates", "launch", "nightly", "--param", "lr=0.5", "--name", "half", "--json")
    assert job.code == 0, job.err
    assert ada.jobs.get(job.json["id"]).spec["arguments"] == ["--lr=0.5"]
    told = yardmaster(
        "schedules", "create", "every night", "--template", "nightly", "--cron", "30 2 * * *", "--zone",
        "Europe/Berlin", "--overlap", "queue", "--grace", "6h", "--param", "lr=0.25", "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    assert (told.json["grace"], told.json["parameters"], len(told.json["next_times"])) == (21_600, {"lr": 0.25}, 5)
    assert "30 2 * * *" in yardmaster("schedules", "list").out
    assert "is paused" in yardmaster("schedules", "pause", "every night").err
    assert "runs next at" in yardmaster("schedules", "resume", "every night").err
    assert yardmaster("schedules", "run", "every night", "--json").json["name"] == "hello"
    assert "launched" in yardmaster("schedules", "show", "every night").out
    assert asyncio.run(listed(ada)) == ["every night"]
    in_use = yardmaster("templates", "remove", "nightly")
    assert (in_use.code, "every night" in in_use.err) == (1, True)
    assert yardmaster("schedules", "remove", "every night").code == 0
    assert yardmaster("templates", "remove", "nightly").code == 0
    assert yardmaster("templates", "show", "nightly").code == 1
    for one in ada.jobs.list():
        ada.jobs.stop(one.id)


async def listed(ada) -> list[str]:
    async with AsyncYardmaster(ada.transport.url, ada.transport.token) as portal:
        return [one.name async for one in portal.schedules.list()]
