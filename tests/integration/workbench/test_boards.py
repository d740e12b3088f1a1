"""What a TensorBoard's task is told: which folders, and which event files are new since the last answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.jobs.models import Job, JobOutput
from apps.workbench import boards, services
from apps.workbench.boards import OVERLAP, cursor_in, folder_of, listing
from apps.workbench.models import WorkbenchSession
from tests.integration.jobs.world import task_of

BOARD = "/api/v1/task/board/"
NAME = "events.out.tfevents.1.worker"


def output(job: Job, name: str = NAME, *, at: datetime | None = None, **columns: Any) -> JobOutput:
    """An event file, as far as the portal has it."""
    at = at or timezone.now() - timedelta(minutes=1)
    segments = [{"start": 0, "size": 10, "key": f"jobs/{job.pk}/{name}", "upload": "", "path": name}]
    told: dict[str, Any] = {"attempt": 1, "size": 10, "has_events": True, "segments": segments, **columns}
    return JobOutput.objects.create(job=job, name=name, updated_at=at, **told)


def asked(session: WorkbenchSession, cursor: str = "") -> dict[str, Any]:
    return listing(session, cursor_in(cursor), timezone.now())


def paths(answer: dict[str, Any]) -> list[str]:
    return [one["path"] for one in answer["files"]]


@pytest.fixture
def job(world, ada) -> Job:
    return world.launch(ada)


def test_a_task_is_told_what_is_new_and_where_its_bytes_lie(job, board):
    file = output(job)
    client = task_of(board.job)
    first = client.get(BOARD).json()
    folder = folder_of(job)
    assert first["folders"] == [folder]
    assert [(one["path"], one["size"]) for one in first["files"]] == [(f"{folder}/{NAME}", 10)]
    segment = first["files"][0]["segments"][0]
    assert (segment["start"], segment["size"]) == (0, 10)
    assert segment["url"].startswith("http")
    assert (first["more"], first["wait"]) == (False, 2.0)
    again = client.get(BOARD, {"cursor": first["cursor"]})
    assert again["Cache-Control"] == "no-store"
    assert (again.json()["files"], again.json()["folders"]) == ([], [folder])
    JobOutput.objects.filter(pk=file.pk).update(size=20, updated_at=timezone.now())
    assert [one["size"] for one in client.get(BOARD, {"cursor": again.json()["cursor"]}).json()["files"]] == [20]


def test_files_of_some_folders_are_listed_alone(job, board, world, ada):
    new, newer = world.launch(ada), world.launch(ada)
    for one in (job, new, newer):
        output(one)
    client = task_of(board.job)
    answer = client.get(BOARD, {"only": f"{folder_of(new)},{folder_of(newer)},of-another"}).json()
    assert sorted(paths(answer)) == sorted(f"{folder_of(one)}/{NAME}" for one in (new, newer))
    assert answer["folders"] == sorted(map(folder_of, (job, new, newer)))
    assert len(client.get(BOARD, {"only": ""}).json()["files"]) == 3


def test_a_file_that_was_committed_late_is_found(job, board):
    now = timezone.now()
    output(job, "b/" + NAME, at=now)
    cursor = asked(board)["cursor"]
    output(job, "a/" + NAME, at=now - OVERLAP / 2)
    assert f"{folder_of(job)}/a/{NAME}" in paths(asked(board, cursor))


def test_more_files_than_one_answer_has_come_one_page_after_the_other(job, board, monkeypatch):
    monkeypatch.setattr(boards, "FILES_AT_ONCE", 10)
    at = timezone.now() - timedelta(minutes=1)
    for number in range(25):  # of one upload, all at the same moment
        output(job, f"{number:02}/{NAME}", at=at)
    found, cursor, answers = [], "", 0
    while True:
        answer = asked(board, cursor)
        answers += 1
        found += paths(answer)
        cursor = answer["cursor"]
        if not answer["more"]:
            break
    assert answers == 3
    assert len(found) == len(set(found)) == 25
    assert paths(asked(board, cursor)) == [], "and then rest"


def test_many_files_that_are_fresh_all_come(job, board, monkeypatch, time_machine):
    monkeypatch.setattr(boards, "FILES_AT_ONCE", 10)
    now = timezone.now()
    time_machine.move_to(now, tick=False)
    for number in range(25):
        output(job, f"{number:02}/{NAME}", at=now - timedelta(milliseconds=25 - number))
    cursor, found = "", set()
    for _ in range(4):
        answer = asked(board, cursor)
        found |= set(paths(answer))
        cursor = answer["cursor"]
    assert len(found) == 25
    time_machine.move_to(now + 2 * OVERLAP, tick=False)
    for _ in range(4):
        answer = asked(board, cursor)
        cursor = answer["cursor"]
    assert (answer["files"], answer["more"]) == ([], False)


@pytest.mark.parametrize(
    "cursor", ["x", "====", "bmFuIDE=", "aW5mIDE=", "MQ==", "MSA=", "OTk5OTk5OTk5OTk5OTk5IDE=", "é"]
)
def test_what_is_no_cursor_is_refused(board, cursor):
    answer = task_of(board.job).get(BOARD, {"cursor": cursor})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "cursor"


def test_a_cursor_with_an_enormous_number_is_no_fault_of_the_portal(job, board):
    from base64 import urlsafe_b64encode

    output(job)
    cursor = urlsafe_b64encode(b"1.0 " + b"9" * 60).decode()
    assert task_of(board.job).get(BOARD, {"cursor": cursor}).status_code == 200


def test_each_attempt_after_the_first_has_a_folder_of_its_own(job, board):
    output(job)
    output(job, attempt=2)
    folder = folder_of(job)
    assert paths(asked(board)) == [f"{folder}/{NAME}", f"{folder}/attempt-2/{NAME}"]


@pytest.mark.parametrize(
    "name", ["../../etc", "/", "..", ".", "a/b\\c", "\u202eevil", "x" * 100, "ж", "--logdir", "a\x7fb", " "]
)
def test_folders_of_hostile_names_are_harmless_and_told_apart(world, ada, board, name):
    one, two = (Job.objects.filter(pk=world.launch(ada).pk) for _ in range(2))
    for rows in (one, two):
        rows.update(name=name)
        output(rows.get())
    found = asked(board)["folders"]
    assert len(found) == 2
    for folder in found:
        assert set(folder) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
        assert folder[0] not in ".-"
        assert len(folder) <= 70


def test_only_chosen_jobs_that_are_still_there_are_shown(world, ada):
    first, second, third = (world.launch(ada) for _ in range(3))
    for one in (first, second, third):
        output(one)
    board = services.tensorboard_start(
        user=ada, namespace=first.namespace, job_ids=[first.pk, second.pk]
    )[0]  # fmt: skip
    assert asked(board)["folders"] == sorted([folder_of(first), folder_of(second)])
    Job.objects.filter(pk=first.pk).update(deleted_at=timezone.now())
    assert asked(board)["folders"] == [folder_of(second)]
    assert paths(asked(board)) == [f"{folder_of(second)}/{NAME}"]


def test_a_namespace_shows_its_jobs_with_events_and_those_that_run(world, ada, bob, board):
    has, runs, neither, foreign = world.launch(ada), world.launch(ada), world.launch(ada), world.launch(bob)
    output(has)
    output(foreign)
    Job.objects.filter(pk__in=[has.pk, neither.pk]).update(phase="SUCCEEDED")
    assert asked(board)["folders"] == sorted([folder_of(has), folder_of(runs)])


def test_files_that_are_no_event_files_are_left_out(job, board):
    output(job, "table.csv", has_events=False)
    assert paths(asked(board)) == []


def test_of_many_jobs_the_newest_are_shown(world, ada, board, monkeypatch):
    monkeypatch.setattr(boards, "MOST_JOBS", 2)
    jobs = [world.launch(ada) for _ in range(3)]
    assert asked(board)["folders"] == sorted(folder_of(one) for one in jobs[1:])


def test_jobs_that_wait_hide_no_curves(world, ada, board, monkeypatch):
    monkeypatch.setattr(boards, "MOST_JOBS", 2)
    has = [world.launch(ada) for _ in range(3)]
    for one in has:
        output(one)
    waiting = [world.launch(ada) for _ in range(3)]
    assert asked(board)["folders"] == sorted(folder_of(one) for one in [*has[1:], *waiting[1:]])


def test_a_part_of_the_jobs_is_said_to_be_one_in_the_answer_on_the_pages_and_in_the_log(
    world, ada, board, me, monkeypatch
):
    monkeypatch.setattr(boards, "MOST_JOBS", 2)
    jobs = [world.launch(ada) for _ in range(3)]
    for one in jobs[:2]:
        output(one)
        output(one, "b/" + NAME)
    session = f"/api/v1/sessions/{board.pk}/"
    assert me.get(session).json()["selection"] is None
    assert asked(board)["selection"] == ""
    output(jobs[2])
    output(world.launch(ada), "table.csv", has_events=False)
    message = "Shows the newest 2 of 3 jobs. Choose jobs in the list of jobs to compare others."
    found = {"jobs": 2, "of": 3, "message": message}
    assert me.get(session).json()["selection"] == found
    assert [one["selection"] for one in me.get("/api/v1/sessions/").json()["results"]] == [found]
    first = asked(board)
    assert first["selection"] == message
    assert asked(board, first["cursor"])["selection"] == "", "it is counted once"
    for page in (f"/sessions/{board.pk}/", "/workbench/"):
        shown = me.get(page).content.decode()
        assert "the newest 2 of 3 jobs." in shown
        assert f'href="/jobs/?namespace={board.namespace.slug}"' in shown
    chosen = services.tensorboard_start(user=ada, namespace=board.namespace, job_ids=[jobs[0].pk])[0]
    assert asked(chosen)["folders"] == [folder_of(jobs[0])], "an older one, where it is chosen"
    assert me.get(f"/api/v1/sessions/{chosen.pk}/").json()["selection"] is None


def test_the_address_is_for_tasks_of_tensorboards_alone(job, board, jupyter, me):
    assert me.get(BOARD).status_code in (401, 403)
    assert task_of(job).get(BOARD).status_code == 404
    assert task_of(jupyter.job).get(BOARD).status_code == 404


def test_jobs_that_run_are_watched_for_as_long_as_one_asks(job, world, ada, bob, board):
    ended, foreign = world.launch(ada), world.launch(bob)
    Job.objects.filter(pk=ended.pk).update(phase="SUCCEEDED")
    now = timezone.now()
    boards.watch(board, now)

    def until(one: Job) -> datetime | None:
        found: datetime | None = world.again(one).watched_until
        return found

    assert until(job) == now + boards.WATCHED
    assert (until(ended), until(foreign), until(board.job)) == (None, None, None)
    boards.watch(board, now + timedelta(seconds=1))
    assert until(job) == now + boards.WATCHED, "of many calls few write"
    boards.watch(board, now + timedelta(seconds=20))
    assert until(job) == now + timedelta(seconds=20) + boards.WATCHED


def test_a_session_of_one_job_watches_no_other(world, ada, job):
    other = world.launch(ada)
    board = services.tensorboard_start(user=ada, namespace=job.namespace, job_ids=[job.pk])[0]
    boards.watch(board)
    assert world.again(job).watched_until
    assert world.again(other).watched_until is None
