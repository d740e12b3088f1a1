"""What a notebook shows of a job: text of others stays text, the link leads to the portal, and outside of a notebook a
line is printed for each change.
"""

from __future__ import annotations

import pytest

from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client import Job, Yardmaster
from yardmaster_client.notebook import Output, bar, job_as_html, job_as_text, page_of, progress

EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(autouse=True)
def _without_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("YARDMASTER_URL", "YARDMASTER_PUBLIC_URL"):
        monkeypatch.delenv(name, raising=False)


def test_nothing_that_others_wrote_is_read_as_html():
    job = Job("id", EVIL, "FAILED", message=EVIL, remedy=EVIL, progress={"step": 3, "unit": EVIL})
    shown = job_as_html(job, [EVIL], url="https://portal.example")
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;") == 5


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "ftp://x"])
def test_without_an_address_of_the_web_there_is_no_link(url: str):
    assert "<a " not in job_as_html(Job("id", "n", "RUNNING"), url=url)


def test_the_link_is_the_address_that_a_browser_reaches(monkeypatch: pytest.MonkeyPatch):
    assert page_of("7", "http://web:8080/") == "http://web:8080/jobs/7/"
    monkeypatch.setenv("YARDMASTER_PUBLIC_URL", "https://portal.example")
    assert page_of("7", "http://web:8080/") == "https://portal.example/jobs/7/"
    assert 'href="https://portal.example/jobs/7/"' in Job("7", "n", "RUNNING")._repr_html_()


def test_progress_is_words_and_a_bar_until_the_end():
    running = Job("id", "n", "RUNNING", progress={"step": 5, "total": 20, "epoch": 2})
    assert "step 5 of 20, epoch 2" in job_as_html(running)
    assert 'max="20.0" value="5.0"' in job_as_html(running)
    assert "value" not in bar(5, None), "it only moves"
    assert "<progress" not in job_as_html(Job("id", "n", "SUCCEEDED", progress={"step": 20, "total": 20}))
    assert job_as_text(running) == "n RUNNING step 5 of 20, epoch 2"


def test_outside_of_a_notebook_each_change_is_a_line(capsys: pytest.CaptureFixture[str]):
    output = Output()
    for text in ("one", "one", "two"):
        output.show("<b>html</b>", text)
    progress("Downloading")(1, 2)
    assert capsys.readouterr().out == "one\ntwo\n"


def test_watching_ends_with_the_job_or_with_what_is_waited_for(server: FlakyServer, capsys: pytest.CaptureFixture[str]):
    phases = iter(["QUEUED", "RUNNING", "RUNNING", "SUCCEEDED"])

    def answer(asked: Asked) -> tuple[int, object]:
        if asked.path.startswith("/ws/"):
            return 404, {}
        if "/logs/lines/" in asked.path:
            return 200, {"lines": [], "gaps": [], "next": None, "ended": True}
        return 200, {"id": "7", "name": "n", "phase": next(phases)}

    server.by_path = answer
    with Yardmaster(server.url, "secret") as portal:
        assert portal.jobs.watch("7", until=lambda job: job.phase == "RUNNING").phase == "RUNNING"
        assert portal.jobs.watch("7").phase == "SUCCEEDED"
    assert capsys.readouterr().out == "n QUEUED\nn RUNNING\nn RUNNING\nn SUCCEEDED\n"
