"""Waiting: how long, how often, and when no more. No test here waits."""

from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.events import Scalar
from yardmaster_runner.exits import Ending
from yardmaster_runner.patience import (
    LAST_REPORT,
    Backoff,
    Haste,
    Patience,
    UploadHaste,
    is_away,
    upload_stall,
    upload_time,
    uploads_end,
)
from yardmaster_runner.reporter import SCALARS_PER_REPORT, Facts


def test_delays_double_to_the_longest_and_begin_anew():
    backoff = Backoff(1.0, 8.0, dice=lambda: 0.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    backoff.reset()
    assert backoff.next() == 1.0


def test_jitter_only_shortens():
    backoff = Backoff(1.0, 8.0, dice=lambda: 0.999)
    assert 0.75 < backoff.next() < 0.76


def test_patience_starts_when_first_asked_and_anew_with_each_success():
    now = [100.0]
    patience = Patience(10, Haste(lambda: now[0]))
    now[0] = 500.0
    assert patience.may_go_on()
    now[0] = 509.0
    assert patience.may_go_on()
    patience.worked()
    now[0] = 518.0
    assert patience.may_go_on()
    now[0] = 519.0
    assert not patience.may_go_on()


def test_haste_ends_all_patience():
    now = [0.0]
    haste = Haste(lambda: now[0])
    patience = Patience(100, haste)
    assert patience.may_go_on()
    haste.be_done_within(5)
    haste.be_done_within(50)
    now[0] = 5.0
    assert not patience.may_go_on()


MOMENTS = st.floats(0, 10_000)


@given(MOMENTS, st.floats(0, 3600), MOMENTS)
def test_uploads_end_between_the_grace_period_and_the_longest_time(stopped_at, grace, moved_at):
    end = uploads_end(stopped_at, grace, moved_at)
    assert stopped_at + grace <= end <= stopped_at + grace + upload_time(grace)
    assert end >= min(moved_at, stopped_at + grace + upload_time(grace))


@given(MOMENTS, st.floats(1, 3600), MOMENTS, st.floats(0, 1000))
def test_uploads_of_which_more_arrives_end_no_earlier(stopped_at, grace, moved_at, later):
    assert uploads_end(stopped_at, grace, moved_at + later) >= uploads_end(stopped_at, grace, moved_at)


def test_uploads_that_stand_still_end_soon_and_others_continue_to_the_longest_time():
    now = [1000.0]
    haste = UploadHaste(lambda: now[0])
    patience = Patience(100_000, haste)
    assert patience.may_go_on()
    haste.stop(1000.0, 10.0)
    still = 10 + upload_stall(10) * (1 - LAST_REPORT)
    now[0] = 1000 + still - 1
    assert patience.may_go_on()
    patience.renew()  # another upload begins, and nothing of it has arrived
    now[0] += 1
    assert not patience.may_go_on()
    now[0] -= 1
    for _ in range(3000):
        patience.worked()
        now[0] += 1
        assert patience.may_go_on()
    now[0] = 1000 + 10 + upload_time(10)
    patience.worked()
    assert not patience.may_go_on()


def test_a_job_without_a_grace_period_has_nothing_to_save():
    assert uploads_end(100.0, 0.0, 200.0) == 100.0


def points(count, value=1.0):
    return [Scalar(".", "loss", step, 0.0, value) for step in range(count)]


def test_scalars_go_in_reports_of_bounded_size_oldest_first():
    facts = Facts(0)
    facts.scalars(points(SCALARS_PER_REPORT + 5))
    assert [one.step for one in facts.take()[1]] == list(range(SCALARS_PER_REPORT))
    assert [one.step for one in facts.take()[1]] == list(range(SCALARS_PER_REPORT, SCALARS_PER_REPORT + 5))


def test_scalars_that_could_not_be_told_come_again_unless_there_are_newer():
    facts = Facts(0)
    facts.scalars(points(3, 1.0))
    _, untold = facts.take()
    facts.scalars(points(1, 2.0))
    facts.give_back(untold)
    assert [(one.step, one.value) for one in facts.take()[1]] == [(0, 2.0), (1, 1.0), (2, 1.0)]


def test_the_latest_facts_win():
    facts = Facts(3)
    facts.state("running")
    facts.progress({"step": 1})
    facts.progress({"step": 2})
    facts.ended(Ending(137, "Killed", "signal"))
    told, _ = facts.take()
    assert told == {
        "restart": 3,
        "state": "ended",
        "progress": {"step": 2},
        "exit_code": 137,
        "reason": "Killed",
        "message": "signal",
    }


def test_a_portal_is_away_once_a_question_has_been_without_answer_for_long():
    assert not is_away(None, 1e9, 10)  # nothing was asked, for however long
    assert not is_away(100.0, 109.9, 10)
    assert is_away(100.0, 110.0, 10)
