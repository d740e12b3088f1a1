"""Fetching from a real Git host, by the process that does it: what comes of it, and what a hostile host or repository
gets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from dataclasses import asdict

import pytest

from tests.real.git_server import git, git_host
from yardmaster.git import fetching
from yardmaster.git.address import git_address
from yardmaster.git.fetching import NotFetched, fetch
from yardmaster.git.hosts import GitHost
from yardmaster.git.limits import Limits

LIMITS = Limits(most_bytes=4 << 20, seconds=60, most_files=50)
FILES = {"train.py": "print('hi')\n", "lib/net.py": "x = 1\n"}


@pytest.fixture
def host(tmp_path):
    with git_host(tmp_path / "repositories") as found:
        yield found


@pytest.fixture
def ask(host, tmp_path):
    """Fetches what stands behind the host's origin."""

    def call(name, limits=LIMITS, **more):
        folder = tmp_path / f"fetched{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        address = git_address(host.address(name))
        return fetch(address, GitHost(host.origin, is_internal=True), folder=folder, limits=limits, **more)

    return call


def why_not(ask, name, **more):
    with pytest.raises(NotFetched) as caught:
        ask(name, **more)
    return caught.value.reason


def files_of(found):
    with zipfile.ZipFile(found.archive) as archive:
        return {one: archive.read(one).decode() for one in archive.namelist()}


def test_branch_tag_commit_and_default_are_fetched(host, ask):
    place = host.repository("lab/x", FILES)
    first = git(place, "rev-parse", "HEAD")
    git(place, "tag", "-a", "v1", "-m", "annotated")
    git(place, "checkout", "-q", "-b", "feature/y")
    second = host.commit(place, {"lib/net.py": "x = 2\n"})
    git(place, "checkout", "-q", "main")
    for ref, commit, full in (
        ("", first, "HEAD"), ("@main", first, "refs/heads/main"), ("@v1", first, "refs/tags/v1"),
        ("@feature/y", second, "refs/heads/feature/y"), (f"@{second}", second, ""),
    ):  # fmt: skip
        found = ask(f"lab/x{ref}")
        assert (found.commit, found.ref, found.files) == (commit, full, 2)
        assert files_of(found)["lib/net.py"] == ("x = 1\n" if commit == first else "x = 2\n")
    assert files_of(ask("lab/x#subdirectory=lib")) == {"net.py": "x = 1\n"}


def test_a_host_of_the_older_protocol_is_fetched_from_too(host, ask):
    place = host.repository("lab/x", FILES)
    first = git(place, "rev-parse", "HEAD")
    git(place, "tag", "-a", "v1", "-m", "annotated")
    between = host.commit(place, {"lib/net.py": "x = 3\n"})
    second = host.commit(place, {"lib/net.py": "x = 2\n"})
    host.is_old = True
    assert ask("lab/x").commit == second
    assert ask("lab/x@v1").commit == first
    assert why_not(ask, "lab/x@v2").code == "git_ref_not_found"
    assert ask(f"lab/x@{between}").commit == between


def test_a_known_commit_is_not_fetched_again(host, ask):
    commit = git(host.repository("lab/x", FILES), "rev-parse", "HEAD")
    ask("lab/x")
    before = len(host.requests)
    host.requests.clear()
    found = ask("lab/x", known={commit})
    assert (found.commit, found.archive) == (commit, None)
    assert len(host.requests) < before


def test_history_is_left_where_it_is(host, ask):
    place = host.repository("lab/x", {"old.bin": os.urandom(2 << 20)})
    git(place, "rm", "-q", "old.bin")
    host.commit(place, FILES)
    assert ask("lab/x", limits=Limits(most_bytes=1 << 20, seconds=60)).files == 2


def test_what_is_not_there_is_named(host, ask):
    host.repository("lab/x", FILES)
    assert why_not(ask, "lab/none").code == "git_not_found"
    reason = why_not(ask, "lab/x@mian")
    assert (reason.code, reason.field, reason.value) == ("git_ref_not_found", "ref", "mian")
    assert why_not(ask, f"lab/x@{'0' * 40}").code == "git_ref_not_found"
    assert why_not(ask, "lab/x#subdirectory=lob").code == "git_folder_not_found"
    host.repository("lab/empty")
    assert why_not(ask, "lab/empty").code == "git_ref_not_found"


def test_a_private_repository_is_fetched_with_its_token_alone(host, ask):
    host.repository("lab/x", FILES)
    host.token = "s3cret-token"
    assert why_not(ask, "lab/x").code == "git_not_found"
    assert why_not(ask, "lab/x", token="another").code == "git_not_found"
    assert ask("lab/x", token="s3cret-token").files == 2
    assert ask("lab/x", token="me:s3cret-token").files == 2


def test_a_host_that_is_not_internal_is_not_asked_at_an_internal_address(host, tmp_path):
    with pytest.raises(NotFetched) as caught:
        fetch(git_address(host.address("lab/x")), GitHost(host.origin), folder=tmp_path, limits=LIMITS)
    assert caught.value.reason.code == "git_address_not_allowed"
    assert host.requests == []


def test_redirects_to_elsewhere_are_not_followed_with_or_without_a_token(host, ask):
    host.answers["/lab/x/info/refs"] = (302, {"Location": "http://169.254.169.254/latest/info/refs"}, b"")
    assert why_not(ask, "lab/x", token="s3cret").code == "git_redirect"
    host.repository("lab/new", FILES)
    host.answers["/lab/old/info/refs"] = (301, {"Location": "/lab/new/info/refs?service=git-upload-pack"}, b"")
    assert ask("lab/old").files == 2


@pytest.mark.parametrize(
    ("status", "kind", "content", "code"),
    [
        (200, "text/html", b"<html>hello</html>", "git_broken"),
        (200, "text/plain", b"1" * 40 + b"\trefs/heads/main\n", "git_not_found"),
        (200, "application/x-git-upload-pack-advertisement", b"zzzz", "git_unreachable"),
        (200, "application/x-git-upload-pack-advertisement", b"", "git_unreachable"),
        (500, "text/plain", b"oops", "git_unreachable"),
        (403, "text/plain", b"", "git_not_found"),
    ],
)
def test_what_is_no_git_host_is_said(host, ask, status, kind, content, code):
    host.answers["/lab/x/info/refs"] = (status, {"Content-Type": kind}, content)
    assert why_not(ask, "lab/x").code == code


def test_a_broken_pack_is_refused(host, ask):
    place = host.repository("lab/x", FILES)
    body = _line(b"packfile\n") + _line(b"\x01PACK\0\0\0\x02\0\0\0\x01" + b"\x95\x0a" + b"\0" * 40) + b"0000"
    kind = {"Content-Type": "application/x-git-upload-pack-result"}
    commit = git(place, "rev-parse", "HEAD")
    refs = _line(b"%s HEAD\n" % commit.encode()) + b"0000"
    answers = iter([refs, body])  # of ls-refs, and of fetch

    def next_answer(path):
        if path.endswith("/git-upload-pack"):
            host.answers[path] = (200, kind, next(answers))

    host.before_answer = next_answer
    assert why_not(ask, "lab/x").code == "git_broken"


def _line(content):
    return b"%04x" % (len(content) + 4) + content


def test_a_pack_that_is_too_large_is_not_read_to_its_end(host, ask):
    host.repository("lab/x", {"data.bin": os.urandom(3 << 20)})
    assert why_not(ask, "lab/x", limits=Limits(most_bytes=1 << 20, seconds=60)).code == "git_too_large"


def test_a_small_pack_that_holds_much_is_refused(host, ask, monkeypatch):
    host.repository("lab/x", {"a.py": "", "zeros.bin": b"\0" * (16 << 20)})
    reason = why_not(ask, "lab/x")
    assert (reason.code, reason.value) == ("git_too_large", "zeros.bin")
    host.repository("lab/bomb", {"zeros.bin": b"\0" * (100 << 20)})
    monkeypatch.setattr(fetching, "_MEMORY", 180 << 20)
    assert why_not(ask, "lab/bomb").code == "git_too_large"


def test_many_files_are_refused(host, ask):
    host.repository("lab/x", {f"{number}.txt": str(number) for number in range(60)})
    assert why_not(ask, "lab/x").code == "git_too_many_files"


def test_a_host_that_does_not_answer_is_waited_for_so_long(host, ask):
    host.repository("lab/x", FILES)
    is_over = threading.Event()
    host.before_answer = lambda path: is_over.wait(30)
    beats = []
    try:
        reason = why_not(
            ask, "lab/x", limits=Limits(most_bytes=1 << 20, seconds=2), beat=lambda *one: beats.append(one)
        )
    finally:
        is_over.set()
    assert reason.code == "git_too_costly"
    assert beats


def test_the_process_ends_by_itself_where_the_worker_that_would_end_it_was_killed(host, tmp_path):
    host.repository("lab/x", FILES)
    is_over = threading.Event()
    host.before_answer = lambda path: is_over.wait(30)
    task = {
        "address": asdict(git_address(host.address("lab/x"))), "host": asdict(GitHost(host.origin, True)),
        "folder": str(tmp_path), "known": [], "token": "", "trusted": {"cafile": None, "capath": None},
        "most_bytes": 1 << 20, "most_files": 5, "seconds": 60, "wall": 1, "memory": 1 << 30,
    }  # fmt: skip
    process = subprocess.run(
        [sys.executable, "-m", "yardmaster.git.program"], input=json.dumps(task).encode(), capture_output=True,
        check=False, timeout=30,
    )  # fmt: skip
    is_over.set()
    assert (process.returncode, process.stdout) == (-signal.SIGALRM, b"")
