"""Code from Git on the launch page: fetched while the form stays, then taken by it, with what it proposes."""

from __future__ import annotations

import re
import uuid

import pytest

from apps.code import worker
from apps.code.models import CodeImport, CodeVersion
from apps.jobs.launch.forms import as_data, new_values
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.test_launch_page import code, data, signed, value_of
from tests.real.git_server import git_host
from yardmaster.git.hosts import GitHost
from yardmaster.job.spec_stored import stored_spec

__all__ = ["code", "data", "engine_settings", "signed", "stores", "world"]

pytestmark = pytest.mark.django_db
SCRIPT = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--epochs')\n"


@pytest.fixture
def host(tmp_path, settings):
    with git_host(tmp_path / "repositories") as found:
        settings.YARDMASTER_GIT_HOSTS = [GitHost(found.origin, is_internal=True)]
        yield found


def sent(host, **more):
    return as_data(new_values("single")) | {"git_address": f"{host.origin}/lab/digits", **more}


def test_the_form_takes_what_was_fetched_and_proposes_from_it(signed, host):
    host.repository("lab/digits", {"net/fit.py": SCRIPT})
    page = signed.post("/jobs/launch/git/", sent(host, git_folder="net")).content.decode()
    found = CodeImport.objects.get()
    state = f"/jobs/launch/git/{found.pk}/"
    assert state in page
    assert "Fetching" in page

    worker.code_import(found.pk)
    page = signed.get(state).content.decode()
    version = CodeVersion.objects.get()
    assert f"Commit <code>{version.git_commit[:12]}</code>" in page
    taken = re.search(r"hx-vals='(\{\"take\":\"code\".*?\})'", page)
    assert taken is not None
    assert str(version.pk) in taken[1]

    more = {"take": "code", "code": str(version.pk), "git_import": str(found.pk)}
    page = signed.post("/jobs/launch/", sent(host, git_folder="net", **more)).content.decode()
    assert value_of(page, "entry_point") == "fit.py"
    assert value_of(page, "name") == "digits"
    assert value_of(page, "git_folder") == "net"
    assert f"{state}?taken=1" in page
    assert "hx-post" not in signed.get(f"{state}?taken=1").content.decode()


def test_what_is_wrong_stands_beside_the_address(signed, host):
    page = signed.post("/jobs/launch/git/", sent(host, git_address="https://example.org/a/b")).content.decode()
    assert "Code is not fetched from example.org." in page
    assert not CodeImport.objects.exists()


def test_a_failed_import_is_said_and_not_asked_again(signed, host):
    host.repository("lab/digits", {"train.py": ""})
    signed.post("/jobs/launch/git/", sent(host, git_ref="mian"))
    found = CodeImport.objects.get()
    worker.code_import(found.pk)
    page = signed.get(f"/jobs/launch/git/{found.pk}/").content.decode()
    assert "Did you mean main?" in page
    assert "hx-trigger" not in page


def test_the_import_of_others_and_what_is_no_import_are_not_shown(signed, host, bob, signed_in):
    host.repository("lab/digits", {"train.py": ""})
    signed.post("/jobs/launch/git/", sent(host))
    assert signed_in(bob).get(f"/jobs/launch/git/{CodeImport.objects.get().pk}/").status_code == 404
    assert signed.get(f"/jobs/launch/git/{uuid.uuid4()}/").status_code == 404
    page = signed.post("/jobs/launch/", sent(host, take="code", git_import="'><script>")).content.decode()
    assert "<script>'" not in page
    assert 'name="git_import"' not in page


def test_a_portal_without_git_says_so(signed, settings):
    settings.YARDMASTER_GIT_HOSTS = []
    assert "This portal fetches no code from Git" in signed.get("/jobs/launch/").content.decode()


def test_the_pages_of_a_job_and_of_its_code_say_where_it_came_from(signed, world, ada):
    job = world.launch(ada)
    used = CodeVersion.objects.filter(pk=stored_spec(job.spec).code_version)
    used.update(
        git_repository="https://github.com/lab/<b>digits", git_ref="v1", git_folder="net", git_commit="ab12" * 10
    )
    for page in (signed.get(f"/jobs/{job.pk}/"), signed.get(f"/code/{used.get().parent_id}/")):
        text = page.content.decode()
        assert 'href="https://github.com/lab/&lt;b&gt;digits" rel="noreferrer noopener"' in text
        assert "github.com/lab/&lt;b&gt;digits</bdi></a> at <bdi>v1</bdi>, folder <bdi>net</bdi>" in text
        assert "ab12ab12ab12</code>" in text
