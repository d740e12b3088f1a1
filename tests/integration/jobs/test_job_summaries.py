"""Images, histograms, texts and hyperparameters of a job: from what its task sends to the page and the API."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.jobs.models import Job
from tests.integration.jobs.test_job_outputs import send
from tests.integration.jobs.world import task_of

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 50
FILE = "images/0123456789abcdef-0.png"
HOSTILE = "<script>alert(1)</script>"
INDEX = {
    "version": 1,
    "images": [
        {
            "run": "train",
            "tag": HOSTILE,
            "steps": [
                {"step": 3, "time": 1.5, "file": "images/0123456789abcdef-1.png", "width": 4, "height": 5},
                {"step": 1_234, "time": 2.5, "file": FILE, "width": 4, "height": 5},
            ],
        }
    ],
    "histograms": [
        {"run": "train", "tag": "weights", "steps": [{"step": 2, "time": 1, "left": -1, "right": 1, "counts": [1, 3]}]}
    ],
    "texts": [{"run": "train", "tag": "note", "steps": [{"step": 1, "time": 1, "text": HOSTILE}]}],
    "hparams": [
        {"run": "a", "time": 1, "values": {"units": 16, "name": HOSTILE}},
        {"run": "b", "time": 1, "values": {"units": 0.5}},
    ],
    "left_out": {"images": 2},
}


def sent(job: Job, index: object = INDEX, files: dict[str, bytes] | None = None, **body: object) -> None:
    found = {FILE: PNG, "images/0123456789abcdef-1.png": PNG} if files is None else files
    content = {"index.json": json.dumps(index).encode(), **found}
    send(task_of(job), {f"_summaries/{path}": data for path, data in content.items()}, **body)


def page(client: APIClient, job: Job, kind: str = "") -> str:
    answer = client.get(f"/jobs/{job.pk}/summaries/", {"kind": kind}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_api_gives_all_kinds_and_where_each_image_is(job, ada, signed_in):
    sent(job, shared=True)
    answer = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/summaries/").json()
    assert answer["attempt"] == 1
    (image,) = answer["images"]
    assert [one["step"] for one in image["steps"]] == [3, 1234]
    assert answer["histograms"][0]["steps"][0]["counts"] == [1, 3]
    assert answer["texts"][0]["steps"][0]["text"] == HOSTILE
    assert answer["hparams"][0]["values"] == {"units": 16, "name": HOSTILE}
    assert answer["left_out"] == 2
    got = signed_in(ada).get(image["steps"][1]["url"])
    assert (got.status_code, got.content, got["Content-Type"]) == (200, PNG, "image/png")


def test_an_image_is_a_file_to_save_with_the_type_of_its_bytes(job, ada, signed_in):
    sent(job, files={FILE: b"\xff\xd8\xff" + b"0" * 50}, shared=True)
    got = signed_in(ada).get(f"/jobs/{job.pk}/summaries/image/", {"path": f"_summaries/{FILE}"})
    assert (got.status_code, got["Content-Type"], got["X-Content-Type-Options"]) == (200, "image/jpeg", "nosniff")
    assert got["Content-Disposition"].startswith("attachment")
    assert got["Content-Security-Policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (FILE, b"<svg onload=alert(1)>"),
        (FILE, PNG + b"0" * (256 << 10)),
        ("images/page.png", PNG),
        ("index.html", PNG),
    ],
)
def test_what_is_no_image_of_a_runner_is_not_served(job, ada, signed_in, path, data):
    sent(job, files={path: data}, shared=True)
    for address in (f"/jobs/{job.pk}/summaries/image/", f"/api/v1/jobs/{job.pk}/summaries/image/"):
        assert signed_in(ada).get(address, {"path": f"_summaries/{path}"}).status_code == 404
        assert signed_in(ada).get(address, {"path": "train.py"}).status_code == 404


def test_each_kind_is_shown_and_what_a_script_wrote_is_text(job, ada, signed_in):
    sent(job, shared=True)
    me = signed_in(ada)
    images, histograms = page(me, job), page(me, job, "histograms")
    assert "1 earlier" in images
    assert f"path=_summaries%2F{FILE.replace('/', '%2F')}&amp;step=1234" in images
    assert "2 more tags" in images
    assert "<polygon" in histograms
    assert "Distribution of weights at step 2, from -1 to 1" in histograms
    texts, hparams = page(me, job, "texts"), page(me, job, "hparams")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;</pre>" in texts
    assert all(word in hparams for word in ("units", ">16<", ">0.5<"))
    assert all(HOSTILE not in one for one in (images, histograms, texts, hparams))
    assert me.get(f"/jobs/{job.pk}/summaries/").content.decode().count('id="job-summaries"') == 1


def test_a_job_without_summaries_has_none_and_a_broken_index_is_none(job, ada, signed_in):
    me = signed_in(ada)
    assert "<h2" not in page(me, job)
    assert "No summaries" in me.get(f"/jobs/{job.pk}/summaries/").content.decode()
    sent(job, index=[[[]]], shared=True)
    assert "<h2" not in page(me, job)
    assert me.get(f"/api/v1/jobs/{job.pk}/summaries/").json()["images"] == []


def test_summaries_of_several_tasks_are_shown_together(job, ada, signed_in):
    sent(job, shared=True)
    sent(job, index={**INDEX, "texts": [{**INDEX["texts"][0], "tag": "of another"}]})
    texts = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/summaries/").json()["texts"]
    assert [one["tag"] for one in texts] == ["note", "of another"]


def test_others_get_404(job, bob, signed_in):
    sent(job, shared=True)
    for address in ("/jobs/{}/summaries/", "/api/v1/jobs/{}/summaries/", "/jobs/{}/summaries/image/?path=_summaries/x"):
        assert signed_in(bob).get(address.format(job.pk)).status_code == 404


def test_the_page_of_the_job_asks_for_summaries_once_there_are_some_and_lists_other_outputs_first(job, ada, signed_in):
    Job.objects.filter(pk=job.pk).update(admitted_at=timezone.now())
    me = signed_in(ada)
    changes = {"HX-Request": "true"}
    before = me.get(f"/jobs/{job.pk}/").content.decode()
    assert '<section id="job-summaries" data-none></section>' in before
    assert f"/jobs/{job.pk}/summaries/" not in before
    assert "job-summaries" not in me.get(f"/jobs/{job.pk}/", headers=changes).content.decode()
    send(task_of(job), {"results.csv": b"a,b"}, shared=True)
    sent(job, shared=True)
    shown = me.get(f"/jobs/{job.pk}/").content.decode()
    assert 'hx-trigger="revealed, job-changed from:body throttle:30s"' in shown
    assert "results.csv" in shown
    assert "_summaries/images" not in shown
    put_there = 'hx-swap-oob="outerHTML:#job-summaries[data-none]"'
    assert put_there not in shown
    assert put_there in me.get(f"/jobs/{job.pk}/", headers=changes).content.decode()


def test_the_page_of_the_job_names_what_is_not_kept(job, ada, signed_in):
    said = "not kept: <b>big.bin</b> (12.0 GiB): over the limit of 2.0 GiB and 2000 files for the working folder"
    body = {"role": "worker", "index": 0, "state": "ended", "exit_code": 0, "unsaved": {"left_out": said}}
    assert task_of(job).post("/api/v1/task/report/", body).status_code == 200
    assert "Not kept: &lt;b&gt;big.bin&lt;/b&gt; (12.0 GiB)" in signed_in(ada).get(f"/jobs/{job.pk}/").content.decode()
