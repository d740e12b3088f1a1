"""What a Git address says, which hosts may be asked, and which of their addresses may be connected to."""

from __future__ import annotations

import ipaddress

import pytest

from portal import code_from_git
from yardmaster.errors import SpecRejected
from yardmaster.git.address import git_address
from yardmaster.git.hosts import GitHost, git_hosts, host_allowed, may_connect
from yardmaster.git.refs import ref_found, ref_missing

PUBLIC = git_hosts(["github.com", "git.example.org:8443"])


@pytest.mark.parametrize(
    ("text", "origin", "path", "ref", "folder"),
    [
        ("git+https://github.com/lab/digits", "https://github.com", "/lab/digits", "", ""),
        ("https://github.com/lab/digits.git", "https://github.com", "/lab/digits.git", "", ""),
        ("git+https://GitHub.com:443/lab/digits/@v1.2", "https://github.com", "/lab/digits", "v1.2", ""),
        ("git+https://h:8443/a/b@feature/x#subdirectory=ex/mnist/", "https://h:8443", "/a/b", "feature/x", "ex/mnist"),
        ("git+https://h/a/b#subdirectory=with%20space", "https://h", "/a/b", "", "with space"),
        ("git+https://[2001:DB8::1]/a", "https://[2001:db8::1]", "/a", "", ""),
        ("git+https://h/%7Euser/b", "https://h", "/~user/b", "", ""),
    ],
)
def test_an_address_says_repository_ref_and_folder(text, origin, path, ref, folder):
    found = git_address(text)
    assert (found.origin, found.path, found.ref, found.folder) == (origin, path, ref, folder)
    assert git_address(str(found)) == found


def test_what_is_named_beside_the_address_stands_in_the_place_of_what_is_in_it():
    found = git_address("git+https://h/a/b@main#subdirectory=x", ref="v2", folder="y")
    assert (found.ref, found.folder, found.name) == ("v2", "y", "b")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "git_address"),
        ("git+https://", "git_address"),
        ("git+https://github.com", "git_address"),
        ("git+https://github.com/../x", "git_address"),
        ("git+https://github.com/%2e%2e/x", "git_address"),
        ("git+https://git hub.com/x", "git_address"),
        ("git+https://h/a\n/b", "git_address"),
        ("git+https://h:99999/a", "git_address"),
        ("git+https://h/a?x=1", "git_address"),
        ("git+https://" + "x" * 2_000, "git_address"),
        ("git+ssh://git@github.com/lab/digits", "git_scheme"),
        ("git@github.com:lab/digits", "git_scheme"),
        ("file:///etc", "git_scheme"),
        ("git+file:///srv/x", "git_scheme"),
        ("ext::sh -c id", "git_address"),
        ("ext::id", "git_scheme"),
        ("/srv/x", "git_scheme"),
        ("git+https://me:token@github.com/a/b", "git_credentials"),
        ("git+https://h/a#egg=b", "git_folder"),
        ("git+https://h/a#subdirectory=../b", "git_folder"),
        ("git+https://h/a#subdirectory=b/.git", "git_folder"),
        ("git+https://h/a@-x", "git_ref"),
        ("git+https://h/a@x..y", "git_ref"),
        ("git+https://h/a@x~1", "git_ref"),
    ],
)
def test_what_is_no_address_is_refused_by_name(text, code):
    with pytest.raises(SpecRejected) as caught:
        git_address(text)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert problem.remedy
    assert "token" not in problem.value


@pytest.mark.parametrize(
    ("page", "meant"),
    [
        ("github.com/lab/digits/tree/main/ex/mnist", "git+https://github.com/lab/digits@main#subdirectory=ex/mnist"),
        ("gitlab.com/lab/deep/digits/-/tree/v1", "git+https://gitlab.com/lab/deep/digits@v1"),
        ("codeberg.org/lab/digits/src/branch/main/a", "git+https://codeberg.org/lab/digits@main#subdirectory=a"),
    ],
)
def test_the_page_of_a_host_is_refused_with_what_is_meant(page, meant):
    with pytest.raises(SpecRejected) as caught:
        git_address(f"https://{page}")
    (problem,) = caught.value.problems
    assert (problem.code, problem.remedy) == ("git_page", f"Write for instance {meant}.")


def test_only_hosts_of_the_list_are_asked():
    assert host_allowed(git_address("https://github.com/a/b"), PUBLIC) == PUBLIC[0]
    assert host_allowed(git_address("https://git.example.org:8443/a"), PUBLIC) == PUBLIC[1]
    for other in ("https://evil.github.com/a", "https://github.com.evil.org/a", "https://github.com:8443/a",
                  "http://github.com/a", "https://git.example.org/a"):  # fmt: skip
        with pytest.raises(SpecRejected, match="is not fetched from") as caught:
            host_allowed(git_address(other), PUBLIC)
        assert caught.value.problems[0].code == "git_host_not_allowed"
    with pytest.raises(SpecRejected) as caught:
        host_allowed(git_address("https://github.com/a"), [])
    assert caught.value.problems[0].code == "git_off"


def test_the_setting_names_hosts(monkeypatch):
    monkeypatch.delenv("YARDMASTER_GIT_HOSTS", raising=False)
    assert [str(one) for one in code_from_git.hosts()][:2] == ["https://github.com", "https://gitlab.com"]
    monkeypatch.setenv("YARDMASTER_GIT_HOSTS", "off")
    assert code_from_git.hosts() == []
    monkeypatch.setenv("YARDMASTER_GIT_HOSTS", "GitHub.com, internal:git.lan, internal:http://10.0.0.5:3000")
    assert code_from_git.hosts() == [
        GitHost("https://github.com"), GitHost("https://git.lan", True), GitHost("http://10.0.0.5:3000", True)
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["http://git.lan", "ssh://git.lan", "git.lan/path", "me@git.lan", "internal:"])
def test_a_setting_that_names_no_host_is_refused_at_the_start(monkeypatch, word):
    monkeypatch.setenv("YARDMASTER_GIT_HOSTS", word)
    with pytest.raises(Exception, match="YARDMASTER_GIT_HOSTS"):
        code_from_git.hosts()


FORBIDDEN = ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:169.254.169.254",
             "100.100.100.200", "fd00:ec2::254", "64:ff9b::a9fe:a9fe"]  # fmt: skip
INTERNAL = ["10.1.2.3", "127.0.0.1", "::1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1",
            "64:ff9b::a00:1", "2002:a00:1::", "198.18.0.1", "240.0.0.1", "fec0::1", "::127.0.0.1", "2001:0:a00:1::",
            "192.88.99.1"]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_addresses_of_the_link_are_never_connected_to(address):
    found = ipaddress.ip_address(address)
    assert not may_connect(found, is_internal=True)
    assert not may_connect(found, is_internal=False)


@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_for_internal_hosts_alone(address):
    found = ipaddress.ip_address(address)
    assert may_connect(found, is_internal=True)
    assert not may_connect(found, is_internal=False)


@pytest.mark.parametrize(
    "address", ["140.82.121.3", "2606:50c0:8000::154", "::ffff:140.82.121.3", "64:ff9b::8c52:7903"]
)
def test_public_addresses_are_connected_to(address):
    assert may_connect(ipaddress.ip_address(address), is_internal=False)


ONE, TWO = b"1" * 40, b"2" * 40
REFS = {b"HEAD": ONE, b"refs/heads/main": ONE, b"refs/tags/v1": TWO, b"refs/tags/v1^{}": ONE, b"refs/heads/v1": ONE}


def test_a_ref_means_what_git_clone_makes_of_it():
    assert ref_found("", REFS).commit == ONE.decode()
    assert ref_found("v1", REFS).ref == "refs/heads/v1"
    tag = ref_found("refs/tags/v1", REFS)
    assert (tag.wanted, tag.commit) == (TWO.decode(), ONE.decode())
    assert ref_found("3" * 40, REFS).wanted == "3" * 40
    assert ref_found("main2", REFS) is None
    assert "Did you mean main?" in ref_missing("main2", REFS).reason.remedy
    assert "40 digits" in ref_missing("abcdef1", REFS).reason.remedy
    assert "default branch" in ref_missing("", {}).reason.message
