"""The words of a mail about a job."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from apps.notifications.letter import Facts, letter, one_line
from apps.notifications.models import Event

FACTS = Facts(
    event=Event.FAILED,
    name="digits",
    attempt=1,
    namespace="vision",
    took=timedelta(minutes=3, seconds=12),
    reason="ScriptFailed",
    message="worker-1 ended with exit code 1.",
    remedy="Read the last lines of its log.",
    explanation="A file that the script reads is not there.",
    help="Check --data_dir.",
    task="worker-1",
    last_lines=["step 1", "Traceback (most recent call last):", '  File "train.py", line 3'],
    job_url="https://yard.example.org/jobs/1/",
    choices_url="https://yard.example.org/account/notifications/",
    off_url="https://yard.example.org/unsubscribe/x/",
)


def test_a_failure_reads_like_this():
    made = letter(FACTS)
    assert made.subject == "[Yardmaster] digits failed: ScriptFailed"
    assert made.body == (
        "digits in vision failed after 3 min 12 s.\n"
        "https://yard.example.org/jobs/1/\n"
        "\n"
        "Why:  worker-1 ended with exit code 1.\n"
        "Also: A file that the script reads is not there.\n"
        "Do:   Read the last lines of its log.\n"
        "Or:   Check --data_dir.\n"
        "\n"
        "Last log lines of worker-1:\n"
        "\n"
        "  step 1\n"
        "  Traceback (most recent call last):\n"
        '    File "train.py", line 3\n'
        "\n"
        "-- \n"
        "You enabled this notification for jobs that you launch.\n"
        "Change your notifications: https://yard.example.org/account/notifications/\n"
        "Stop e-mails of this kind: https://yard.example.org/unsubscribe/x/\n"
    )


@pytest.mark.parametrize(
    ("event", "subject", "first"),
    [
        (Event.SUCCEEDED, "[Yardmaster] digits succeeded", "digits in vision succeeded after 3 min 12 s."),
        (Event.STOPPED, "[Yardmaster] digits was stopped", "digits in vision was stopped after 3 min 12 s."),
        (Event.WAITS, "[Yardmaster] digits is still queued", "digits in vision is still queued for 3 min 12 s."),
    ],
)
def test_other_events_say_what_happened(event, subject, first):
    made = letter(dataclasses.replace(FACTS, event=event))
    assert made.subject == subject
    assert made.body.splitlines()[0] == first


def test_what_is_said_twice_is_written_once():
    made = letter(dataclasses.replace(FACTS, explanation=FACTS.message, help=FACTS.remedy))
    assert made.body.count(FACTS.message) == made.body.count(FACTS.remedy) == 1


def test_a_later_attempt_is_named_and_an_unknown_time_left_out():
    body = letter(dataclasses.replace(FACTS, attempt=3, took=None)).body
    assert body.startswith("digits, attempt 3, in vision failed.\n")


@pytest.mark.parametrize(
    "text", ["a\nBcc: eve@example.org", "a\r\n\r\nb", "\x1b[2Ja", "\u202eevil", "\u2028x", "\ud800", "\x00"]
)
def test_no_text_breaks_out_of_its_line(text):
    made = letter(dataclasses.replace(FACTS, name=text, reason=text, message=text, last_lines=[text]))
    assert made.subject.isprintable()
    body = made.body.replace("\n", "")
    assert body.isprintable()
    assert len(made.body.splitlines()) <= len(letter(FACTS).body.splitlines())
    made.body.encode()


def test_what_joins_an_emoji_stays_and_what_is_long_is_cut():
    assert one_line("👩‍🔬 data", 20) == "👩‍🔬 data"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert len(letter(dataclasses.replace(FACTS, name="n" * 10_000)).subject) < 150
