"""Addresses of objects are those that the caller can reach: people have others than what runs in a task."""

from __future__ import annotations

import pytest

from tests.integration.sending import begin, complete, part, send

CONTENT = {"a.txt": b"abc"}
TASKS = {"Yardmaster-Audience": "tasks"}
PEOPLES, OF_TASKS = "http://127.0.0.1:8080/", "http://10.0.0.1:8080/"


@pytest.fixture(autouse=True)
def store(settings, tmp_path):
    options = {"root": tmp_path / "objects", "base_url": PEOPLES, "task_url": OF_TASKS}
    storage = settings.YARDMASTER_STORAGE
    settings.YARDMASTER_STORAGE = storage | {"options": storage["options"] | options}


@pytest.mark.parametrize(
    ("headers", "place"), [({}, PEOPLES), (TASKS, OF_TASKS), ({"Yardmaster-Audience": "x"}, PEOPLES)]
)
def test_a_caller_in_a_task_sends_and_reads_at_the_address_of_tasks(ada, signed_in, headers, place):
    client = signed_in(ada)
    upload = begin(client, CONTENT)
    wanted = {"parts": [part(0, 1, CONTENT["a.txt"])]}
    [signed] = client.post(f"/api/v1/uploads/{upload['id']}/parts/", wanted, headers=headers).json()["urls"]
    assert signed["url"].startswith(place)
    send(client, upload, CONTENT)
    complete(client, upload["id"])
    made = client.post("/api/v1/datasets/", {"name": "a", "upload": upload["id"]}).json()
    files = f"/api/v1/dataset-versions/{made['latest']['id']}/files/"
    assert client.get(f"{files}content/", {"path": "a.txt"}, headers=headers)["Location"].startswith(place)
    assert client.get(f"{files}content/", {"path": "a.txt"})["Location"].startswith(PEOPLES), "nothing is kept"
