"""What an answer means, when it is tried again, how a message is signed, and how it is written for chats."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from yardmaster.outgoing import retries
from yardmaster.outgoing.chat import headline, written
from yardmaster.outgoing.retries import Meaning, asked_pause, meaning, next_try, rest_until
from yardmaster.outgoing.signing import signature

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ZERO = timedelta(0)


@pytest.mark.parametrize(
    ("status", "means"),
    [(200, Meaning.DONE), (204, Meaning.DONE), (301, Meaning.AGAIN), (400, Meaning.AGAIN), (410, Meaning.GONE),
     (429, Meaning.AGAIN), (500, Meaning.AGAIN)],
)  # fmt: skip
def test_what_a_status_means(status: int, means: Meaning) -> None:
    assert meaning(status) is means


def test_tries_are_further_and_further_apart_for_a_day() -> None:
    at, tries = NOW, 0
    while at is not None:
        last, tries = at, tries + 1
        at = next_try(NOW, tries, at)
    assert 10 < tries < 20
    assert timedelta(hours=24) <= last - NOW <= timedelta(hours=28)


def test_a_receiver_names_its_pause_within_bounds() -> None:
    assert asked_pause("120", NOW) == timedelta(minutes=2)
    assert asked_pause("99999999999999999999", NOW) == retries.LONGEST_PAUSE
    assert asked_pause("Thu, 01 Jan 2026 00:05:00 GMT", NOW) == timedelta(minutes=5)
    assert asked_pause("Thu, 01 Jan 2020 00:05:00 GMT", NOW) == ZERO
    assert all(asked_pause(text, NOW) == ZERO for text in ("", "soon", "-5", "²", "1e9"))
    assert next_try(NOW, 1, NOW, "3600") == NOW + timedelta(hours=1)


def test_who_fails_rests_and_who_is_slow_has_half_of_the_time() -> None:
    assert rest_until(0, ZERO, NOW) is None
    assert rest_until(0, timedelta(seconds=9), NOW) == NOW + timedelta(seconds=9)
    assert rest_until(1, ZERO, NOW) == NOW + timedelta(seconds=10)
    assert rest_until(50, ZERO, NOW) == NOW + timedelta(minutes=10)


def test_the_signature_is_that_of_the_recipe() -> None:
    def expected(key: str) -> str:
        return "v1=" + hmac.new(key.encode(), b"1700000000.{}", hashlib.sha256).hexdigest()

    assert signature(["new", "old"], "1700000000", b"{}") == f"{expected('new')},{expected('old')}"


HOSTILE = [
    "<!channel>", "<@U123>", "<https://evil.example.org|click>", "@all @channel @here", "https://evil.example.org",
    "[click](https://evil.example.org)", "www.evil.example.org", "evil.example.org", "<at>Everyone</at>",
    "*bold* _it_ ~no~ `code`", "a\nb\r\n# title", "![x](http://evil.example.org/x.png)", "\u202egnp.exe",
    "mailto:a@evil.example.org", ":tada: $x$ ||spoiler||",
]  # fmt: skip


def about(name: str) -> dict[str, object]:
    job = {"name": name, "attempt": 1, "reason": name, "message": name, "url": "https://portal.example.org/jobs/1/"}
    return {"event": "job.failed", "namespace": {"id": "1", "name": "vision"}, "job": job}


def without_ours(text: str) -> str:
    return text.replace("https://portal.example.org/jobs/1/", "")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_makes_no_link_and_mentions_no_one_in_slack(name: str) -> None:
    sent = written("slack", about(name))
    text = without_ours(sent["text"])
    assert text.count("<") == text.count(">") == 1, "the portal's own link alone"
    assert not any(sign in text for sign in ("://", "@a", "@c", "@h", "@U", "www.", "evil.e", "\u202e"))
    assert sent["text"].count("\n") == 2
    assert (sent["parse"], sent["link_names"]) == ("none", False)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_makes_no_link_and_mentions_no_one_in_mattermost(name: str) -> None:
    text = without_ours(written("mattermost", about(name))["text"])
    own = "[Open in Yardmaster]()"
    assert text.endswith(own)
    text = text.removesuffix(own)
    assert not any(sign in text for sign in ("://", "@a", "@c", "@h", "www.", "evil.e"))
    message = text.split("\n")[1]
    for sign in "*_[]()`<>~|!#$":
        assert message.count(sign) == message.count(f"\\{sign}"), sign


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_a_run_of_text_in_teams(name: str) -> None:
    (attachment,) = written("teams", about(name))["attachments"]
    content = attachment["content"]
    assert {block["type"] for block in content["body"]} == {"RichTextBlock"}
    assert "msteams" not in content
    assert [action["url"] for action in content["actions"]] == ["https://portal.example.org/jobs/1/"]
    runs = [run["text"] for block in content["body"] for run in block["inlines"]]
    assert not any(sign in text for text in runs for sign in ("://", "@a", "@c", "www.", "\n"))


def test_what_a_message_says() -> None:
    body = about("digits")
    body["job"]["attempt"] = 2  # type: ignore[index]
    assert headline(body).replace("\u200b", "") == "Job failed: digits, attempt 2, in vision (digits)"
    digest = {"event": "digest", "title": "2 notifications", "items": [about("a"), about("b")], "left_out": 3}
    assert written("mattermost", digest)["text"].count("\n") == 3
    assert json.loads(json.dumps(written("json", body))) == body


def test_a_chat_shows_the_newest_of_a_long_digest_and_a_program_gets_all() -> None:
    items = [about(f"run-{number}") for number in range(25)]
    digest = {"event": "digest", "title": "28 notifications", "items": items, "left_out": 3}
    lines = written("mattermost", digest)["text"].splitlines()
    assert (len(lines), lines[-1]) == (22, "and 8 more")
    assert "run\\-5" in lines[1].replace("\u200b", "")
    assert written("json", digest)["items"] == items


@pytest.mark.parametrize("form", ["slack", "mattermost", "teams"])
def test_what_is_of_no_job_is_its_title_with_a_link(form: str) -> None:
    body = {"event": "budget.spent", "namespace": {"name": "vision"}, "title": "Used up", "url": "https://portal/x"}
    text = json.dumps(written(form, body))
    assert "Used up" in text
    assert "https://portal/x" in text
    assert "budget.spent" not in text
