"""Which rule counts, when something is due to go, and what spares it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from yardmaster.lifecycle.retention import Ended, Fate, Kind, Rule, Spared, fate, rule_in_force

NOW = datetime(2027, 1, 31, 12, tzinfo=UTC)
OLD = Ended(NOW - timedelta(days=40))
RULE = Rule(Kind.LOGS, 30)


def test_without_a_rule_everything_stays_for_ever():
    assert fate(None, OLD) == fate(replace(RULE, days=None), OLD) == Fate(None)
    assert not fate(None, OLD).goes(NOW + timedelta(days=100_000))
    assert replace(RULE, days=None).before(NOW) is None


def test_it_goes_when_the_days_have_passed_and_not_before():
    job = Ended(NOW - timedelta(days=30))
    assert fate(RULE, job).due_at == NOW
    assert fate(RULE, job).goes(NOW)
    assert not fate(RULE, job).goes(NOW - timedelta(microseconds=1))
    assert RULE.before(NOW) == job.ended_at


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"is_pinned": True}, Spared.PINNED),
        ({"is_used": True}, Spared.IN_USE),
        ({"is_held": True}, Spared.HELD),
        ({"has_model": True}, Spared.MODEL),
        ({"is_pinned": True, "has_model": True}, Spared.PINNED),
    ],
)
def test_what_something_refers_to_stays_and_it_is_said_why(facts, why):
    found = fate(RULE, replace(OLD, **facts))
    assert found.spared is why
    assert not found.goes(NOW)
    assert found.due_at == OLD.ended_at + timedelta(days=30), "it goes from then on, once nothing spares it"


def test_a_rule_may_take_the_logs_of_jobs_with_a_model_but_never_the_whole_job():
    job = replace(OLD, has_model=True)
    assert fate(replace(RULE, spares_models=False), job).goes(NOW)
    whole = Rule(Kind.JOBS, 30, spares_models=False)
    assert fate(whole, job).spared is Spared.MODEL


def test_tags_and_the_archive_are_exceptions_of_a_rule():
    rule = replace(RULE, tags=frozenset({"paper", "base"}))
    assert fate(rule, replace(OLD, tags=["paper"])).spared is Spared.TAGGED
    assert fate(rule, replace(OLD, tags=["other"])).goes(NOW)
    archived = replace(RULE, only_archived=True)
    assert fate(archived, OLD).spared is Spared.NOT_ARCHIVED
    assert fate(archived, replace(OLD, is_archived=True)).goes(NOW)


def test_the_newest_of_a_namespace_stay_and_so_do_those_that_ended_at_the_same_moment():
    rule = replace(RULE, newest=2)
    assert fate(rule, OLD, newest_since=None).spared is Spared.NEWEST, "there are no more than two"
    assert fate(rule, OLD, newest_since=OLD.ended_at).spared is Spared.NEWEST
    assert fate(rule, OLD, newest_since=OLD.ended_at + timedelta(seconds=1)).goes(NOW)


@pytest.mark.parametrize("days", [7, 400, None])
def test_a_rule_of_the_namespace_takes_the_place_of_the_portals_be_it_longer_or_shorter(days):
    own = Rule(Kind.LOGS, days)
    assert rule_in_force(RULE, own) is own
    assert rule_in_force(RULE, None) is RULE
    assert rule_in_force(None, None) is None
