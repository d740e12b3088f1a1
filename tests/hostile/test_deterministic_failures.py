"""Scripts that fail the same way at every start: one start, or two, and never a machine held for more of them."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.real.scene import Scene
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

ARGUMENTS = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--steps')\nparser.parse_args()\n"
HOPELESS = {
    "unknown arguments": (ARGUMENTS, "BadArguments", "unrecognized arguments: --rate=3"),
    "a name that is not defined": ("model = biuld()", "CodeError", "NameError: name 'biuld' is not defined"),
    "a file that the code does not have": ("open('words.txt')", "FileMissing", "words.txt"),
    "a file that the inputs do not have": (
        "import os\nopen(os.path.join(os.environ['DATA_DIR'], 'train.csv'))",
        "FileMissing",
        "train.csv",
    ),
}


def failed(scene: Scene, script: str, **changes: object) -> Job:
    job = scene.settled(scene.launch(script, retries=3, **changes))
    assert job.phase == "FAILED"
    return job


def restarts(scene: Scene, job: Job) -> int:
    (task,) = scene.client.jobs.tasks(job.id)
    return int(task["restarts"])


@pytest.mark.parametrize(("script", "reason", "said"), HOPELESS.values(), ids=HOPELESS)
def test_what_fails_at_every_start_is_started_once(attacked: Scene, script: str, reason: str, said: str):
    job = failed(attacked, script, arguments=["--rate=3"])
    assert (job.reason, restarts(attacked, job)) == (reason, 0)
    assert said in job.message
    assert job.message.endswith("Restarting cannot help.")


def test_a_wrong_type_is_started_once_more_and_then_the_end(attacked: Scene):
    job = failed(attacked, "len(5)")
    assert (job.reason, restarts(attacked, job)) == ("SameFailure", 1)
    assert "TypeError: object of type 'int' has no len()" in job.message


def test_the_same_traceback_twice_without_progress_is_the_end(attacked: Scene):
    job = failed(attacked, "import os\nprint('epoch of', os.getpid())\nraise ValueError(f'bad shape {os.getpid()}')")
    assert (job.reason, restarts(attacked, job)) == ("SameFailure", 1)
    assert re.match(r"Worker 0 failed the same way twice \(ValueError: bad shape \d+\)", job.message)
    page = words_of(page_of(attacked, job))
    assert "Restarting cannot help." in page
    assert "restarts instead of" not in page
    assert attacked.client.jobs.why(job.id)["message"] == job.message
    assert "Restarting cannot help." in attacked.command("jobs", "why", job.id).stdout


COUNTS = """
import os
path = os.environ["LOG_DIR"] + "/count"
start = len(open(path).read()) if os.path.exists(path) else 0
open(path, "a").write("x")
"""
"""How many starts there were before this one."""


def test_a_failure_that_progress_or_a_lost_connection_explains_is_restarted(attacked: Scene):
    further = "print('step', 10 * start, flush=True)\nif start < 2: raise ValueError('bad batch')\n"
    lost = "if start < 2: raise ConnectionResetError('Connection reset by peer')\n"
    for script in (further, lost):
        job = attacked.settled(attacked.launch(COUNTS + script, retries=3))
        assert (job.phase, restarts(attacked, job)) == ("SUCCEEDED", 2), job.message


def test_the_first_button_edits_and_the_second_retries_unchanged(attacked: Scene):
    job = failed(attacked, "model = biuld()")
    page = page_of(attacked, job)
    buttons = re.findall(r'<(?:a|button) class="btn[^"]*"[^>]*>', page[page.index('class="job-ways"') :])[:2]
    assert ["job-edit" in buttons[0], "job-retry" in buttons[1]] == [True, True]
    assert ["btn-primary" in one for one in buttons] == [True, False]
    assert "Edit and relaunch" in page
    assert "Retry unchanged" in page


SIGN_IN = """
import django; django.setup()
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
user = get_user_model().objects.get(username="admin")
store = SessionStore()
store.update({
    "_auth_user_id": str(user.pk), "_auth_user_backend": settings.AUTHENTICATION_BACKENDS[0],
    "_auth_user_hash": user.get_session_auth_hash(),
})
store.save()
print(settings.SESSION_COOKIE_NAME, store.session_key)
"""


def page_of(scene: Scene, job: Job) -> str:
    name, value = scene.portal.script(SIGN_IN).split()
    with httpx2.Client(base_url=scene.portal.url, cookies={name: value}, timeout=60) as browser:
        return browser.get(f"/jobs/{job.id}/").raise_for_status().text


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
