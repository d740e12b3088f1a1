"""The gallery's code, served by a real Git host, fetched by a worker and trained on the local engine: with the command
alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.git_server import GitHost, git, git_host
from tests.real.scene import Scene, scene
from yardmaster_client.cli.main import run

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

FOLDER = Path(__file__).parents[3] / "examples" / "gallery" / "git"


@pytest.fixture(scope="module")
def host(tmp_path_factory) -> Iterator[GitHost]:
    """A host with the gallery's folder as a repository, at the tag v1."""
    with git_host(tmp_path_factory.mktemp("repositories")) as found:
        place = found.repository("lab/line")
        shutil.copytree(FOLDER, place, dirs_exist_ok=True)
        found.commit(place, {})
        git(place, "tag", "-a", "v1", "-m", "The first")
        found.commit(place, {"linear/train.py": "raise SystemExit('not this one')\n"})
        yield found


@pytest.fixture(scope="module")
def portal_scene(host: GitHost) -> Iterator[Scene]:
    with scene(settings={"YARDMASTER_GIT_HOSTS": f"internal:{host.origin}"}) as one:
        yield one


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts():
    """These tests use no database of their own: what the folder above prepares for Django is not needed here."""


@pytest.fixture
def command(portal_scene: Scene, monkeypatch, capsys):
    """Runs `yardmaster` as the scene's administrator: its exit code, what it printed, and what it said beside that."""
    monkeypatch.setenv("YARDMASTER_URL", portal_scene.portal.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", portal_scene.token)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.mark.long
def test_a_job_is_launched_from_a_tag_and_the_commit_is_fetched_once(host: GitHost, portal_scene: Scene, command):
    address = f"{host.address('lab/line')}@v1#subdirectory=linear"
    code, out, err = command("jobs", "launch", FOLDER / "job.yaml", "--code", address, "--wait")
    assert code == 0, (out, err, portal_scene.portal.log_of("worker")[-4000:])
    job = portal_scene.client.jobs.get(next(portal_scene.client.jobs.list(search="gallery-git")).id)
    loss = next(line for line in portal_scene.lines(job) if line.startswith("loss "))
    assert float(loss.split()[1]) < 0.01

    version = portal_scene.client.code.version(job.spec["code"])
    commit = git(host.root / "lab/line", "rev-parse", "v1^{commit}")
    assert version.git == {
        "repository": f"{host.origin}/lab/line", "ref": "v1", "commit": commit, "folder": "linear"
    }  # fmt: skip

    again = portal_scene.client.code.fetch(address)
    assert (again.code_version, again.is_new, again.commit) == (version.id, False, commit)


def test_a_ref_that_is_not_there_is_refused_with_the_near_one(host: GitHost, command):
    code, out, err = command("jobs", "launch", FOLDER / "job.yaml", "--code", f"{host.address('lab/line')}@v2")
    assert (code, out) == (1, "")
    assert "The repository has no branch or tag v2." in err
    assert "Did you mean v1?" in err


def test_a_host_that_is_not_allowed_is_refused(command):
    code, out, err = command("jobs", "launch", FOLDER / "job.yaml", "--code", "git+https://example.org/lab/line")
    assert (code, out) == (1, "")
    assert "Code is not fetched from example.org." in err
    assert "YARDMASTER_GIT_HOSTS" in err
