"""Code over the API. What it shares with datasets is tested there."""

from __future__ import annotations

import io
import uuid
import zipfile

import pytest

from apps.code.models import CodeVersion
from apps.code.selectors import CODE
from apps.jobs.checking import sources_of
from apps.namespaces.selectors import namespace_for
from apps.uploads.models import Upload
from apps.uploads.versioned.selectors import files_of, version_for
from apps.uploads.versioned.services import collection_create, version_add
from tests.integration.sending import begin, complete, send, uploaded, zipped

PATH = "/api/v1/code/"
CONTENT = {
    "train.py": b"print('hi')\n",
    "lib/model.py": "# ü\n".encode(),
    "data/big.bin": b"\0" * 3_000_000,
    "README": b"",
}


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def make(client, content=CONTENT, name="digits"):
    answer = client.post(PATH, {"name": name, "upload": uploaded(client, content, "code")})
    assert answer.status_code == 201, answer.json()
    return answer.json()


def test_code_is_made_of_files_and_versioned(client):
    code = make(client)
    assert (code["name"], code["latest"]["number"], code["latest"]["files"]) == ("digits", 1, 4)
    upload = uploaded(client, CONTENT | {"train.py": b"print('ho')\n"}, "code")
    version = client.post(f"{PATH}{code['id']}/versions/", {"upload": upload, "note": "louder"}).json()
    assert (version["number"], version["changed"], version["code"]) == (2, 1, code["id"])


def test_a_zip_becomes_code(client):
    data = zipped(CONTENT)
    upload = begin(client, {"code.zip": data}, "code")
    send(client, upload, {"code.zip": data})
    assert complete(client, upload["id"], unpack=True).status_code == 200
    code = client.post(PATH, {"name": "zipped", "upload": upload["id"]}).json()
    files = client.get(f"/api/v1/code-versions/{code['latest']['id']}/files/").json()["results"]
    assert [one["path"] for one in files] == sorted(CONTENT)


def test_a_version_is_downloaded_as_one_zip(client):
    code = make(client, name='odd "näme"')
    answer = client.get(f"/api/v1/code-versions/{code['latest']['id']}/archive/")
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    pieces = list(answer.streaming_content)
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == CONTENT
    again = client.get(f"/api/v1/code-versions/{code['latest']['id']}/archive/")
    assert b"".join(again.streaming_content) == b"".join(pieces)


def test_an_archive_is_made_in_pieces(client):
    import os

    code = make(client, {"big.bin": os.urandom(5_000_000)})
    answer = client.get(f"/api/v1/code-versions/{code['latest']['id']}/archive/")
    assert max(map(len, answer.streaming_content)) < 3_000_000


def test_a_script_is_downloaded_as_text_that_nothing_runs(client):
    from django.test import Client

    code = make(client, {"page.html": b"<script>", "a.txt": b"text"})
    for path, kind in (("page.html", "application/octet-stream"), ("a.txt", "text/plain")):
        answer = client.get(f"/api/v1/code-versions/{code['latest']['id']}/files/content/?path={path}")
        body = Client().get(answer.headers["Location"].partition(":8080")[2])
        assert body.headers["Content-Type"] == kind
        assert body.headers["X-Content-Type-Options"] == "nosniff"
        body.close()


def test_sources_are_read_for_the_preflight_within_a_limit(ada, client):
    code = make(client, CONTENT | {"deep/er/huge.py": b"#" * 5000, "latin.py": b"# \xfc"})
    version = version_for(CODE, ada, uuid.UUID(code["latest"]["id"]))
    sources = sources_of(version, 1000)
    assert sources == {"train.py": "print('hi')\n", "latin.py": "# \ufffd", "lib/model.py": "# ü\n"}
    assert "deep/er/huge.py" in sources_of(version, 10_000)
    assert sources_of(version, 0) == {}


def test_a_foreign_code_is_a_404_at_every_address(bob, client, signed_in):
    code = make(client)
    version = code["latest"]["id"]
    stranger = signed_in(bob)
    below = ["", "files/", "files/content/?path=train.py", "archive/"]
    for address in (f"{PATH}{code['id']}/", *[f"/api/v1/code-versions/{version}/{one}" for one in below]):
        assert stranger.get(address).status_code == 404


def test_code_is_made_by_services_too(ada, client):
    uploaded(client, CONTENT, "code")
    first = Upload.objects.get()
    mine = namespace_for(ada, None)
    code = collection_create(CODE, namespace=mine, actor=ada, name="made", description="", upload=first)
    uploaded(client, CONTENT, "code")
    version = version_add(CODE, code, actor=ada, upload=Upload.objects.exclude(pk=first.pk).get())
    assert isinstance(version, CodeVersion)
    assert version.number == 2
    assert [file.path for file in files_of(version)] == sorted(CONTENT)


def test_a_dataset_is_no_code(client):
    upload = uploaded(client, CONTENT, "dataset")
    answer = client.post(PATH, {"name": "a", "upload": upload})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "upload")
    dataset = client.post("/api/v1/datasets/", {"name": "a", "upload": upload}).json()
    assert client.get(f"{PATH}{dataset['id']}/").status_code == 404
    assert client.get(f"/api/v1/code-versions/{dataset['latest']['id']}/").status_code == 404
