"""A real OpenID provider (dex) whose users and groups are in a real LDAP server (slapd)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.real.portal import free_port

ROOT = Path(__file__).resolve().parents[2]
BASE = "dc=example,dc=org"
PASSWORD = "directory password"
_CONF = """include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
suffix "{base}"
rootdn "cn=admin,{base}"
rootpw admin
directory {folder}/db
"""


@dataclass(frozen=True)
class Directory:
    """The LDAP server. `port` is where it listens, `folder` has its tools' configuration."""

    port: int

    def change(self, ldif: str) -> None:
        """Apply changes, as `ldapmodify` reads them."""
        command = ["ldapmodify", "-x", "-H", f"ldap://127.0.0.1:{self.port}", "-D", f"cn=admin,{BASE}", "-w", "admin"]
        subprocess.run(command, input=ldif, text=True, check=True, capture_output=True)

    def set_members(self, group: str, *names: str) -> None:
        members = "".join(f"member: uid={name},{BASE}\n" for name in (*names, "nobody-else"))
        self.change(f"dn: cn={group},{BASE}\nchangetype: modify\nreplace: member\n{members}")


@dataclass(frozen=True)
class Provider:
    """dex. `issuer` is its address."""

    issuer: str
    directory: Directory

    def sign_in(self, address: str, name: str, password: str = PASSWORD, *, approve: bool = True) -> str:
        """What a user does there: the name and password, and the consent. Returns the address that dex leads back to,
        or the text of the page on which it goes no further."""
        browser = requests.Session()
        page = browser.get(address, timeout=10)
        page = browser.post(page.url, data={"login": name, "password": password}, timeout=10, allow_redirects=False)
        if page.status_code == 200:
            return page.text
        approval = requests.compat.urljoin(self.issuer, page.headers["Location"])  # type: ignore[attr-defined]
        asked = browser.get(approval, timeout=10)
        request = re.search(r'name="req" value="([^"]+)"', asked.text)
        assert request is not None, asked.text
        answer = {"req": request.group(1), "approval": "approve" if approve else "rejected"}
        done = browser.post(asked.url, data=answer, timeout=10, allow_redirects=False)
        return str(done.headers.get("Location", done.text))


def programs() -> tuple[str, str]:
    """dex and its pages. Skips the test where slapd or Go is missing."""
    if shutil.which("slapd", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("needs slapd (Debian: apt install slapd ldap-utils)")
    built = subprocess.run([ROOT / "deploy/openid/build"], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"dex could not be built: {built.stderr.strip().splitlines()[-1]}")
    program, web = built.stdout.split()
    return program, web


@contextmanager
def directory(folder: Path) -> Iterator[Directory]:
    """slapd with the people ada (of vision and platform) and bob (of none)."""
    (folder / "db").mkdir(parents=True)
    conf = folder / "slapd.conf"
    conf.write_text(_CONF.format(folder=folder, base=BASE))
    tools = f"{os.environ['PATH']}:/usr/sbin"
    slapadd, slapd = shutil.which("slapadd", path=tools), shutil.which("slapd", path=tools)
    assert slapadd is not None
    assert slapd is not None
    people = "".join(_person(name) for name in ("ada", "bob", "eve"))
    groups = _group("vision-people", "ada") + _group("portal-admins", "nobody-else")
    text = f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n\n{people}{groups}"
    subprocess.run([slapadd, "-f", conf], input=text, text=True, check=True, capture_output=True)
    port = free_port()
    with _running([slapd, "-f", str(conf), "-h", f"ldap://127.0.0.1:{port}", "-d", "0"], folder / "slapd.log"):
        yield Directory(port)


@contextmanager
def provider(folder: Path, redirect: str, *, seconds: int = 600) -> Iterator[Provider]:
    """dex over a directory of its own. ID tokens last for so many seconds."""
    program, web = programs()
    with directory(folder / "ldap") as people:
        port = free_port()
        issuer = f"http://127.0.0.1:{port}/dex"
        search = {"baseDN": BASE, "username": "uid", "idAttr": "uid", "emailAttr": "mail", "nameAttr": "cn"}
        groups = {"baseDN": BASE, "filter": "(objectClass=groupOfNames)", "userAttr": "DN", "groupAttr": "member",
                  "nameAttr": "cn"}  # fmt: skip
        ldap = {
            "host": f"127.0.0.1:{people.port}", "insecureNoSSL": True, "bindDN": f"cn=admin,{BASE}", "bindPW": "admin",
            "userSearch": search, "groupSearch": groups,
        }  # fmt: skip
        config = {
            "Issuer": issuer, "Listen": f"127.0.0.1:{port}", "Web": web, "TokenSeconds": seconds,
            "ClientID": "yardmaster", "Secret": "client secret", "RedirectURIs": [redirect],
            "Connectors": [{"Type": "ldap", "ID": "ldap", "Name": "LDAP", "Config": ldap}],
        }  # fmt: skip
        (folder / "dex.json").write_text(json.dumps(config))
        with _running([program, str(folder / "dex.json")], folder / "dex.log"):
            yield Provider(issuer, people)


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def answers(issuer: str) -> bool:
    """Whether it is up."""
    try:
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _person(name: str) -> str:
    return (
        f"dn: uid={name},{BASE}\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name.title()}\nsn: {name.title()}\n"
        f"mail: {name}@example.org\nuserPassword: {PASSWORD}\n\n"
    )


def _group(name: str, member: str) -> str:
    return f"dn: cn={name},{BASE}\nobjectClass: groupOfNames\ncn: {name}\nmember: uid={member},{BASE}\n\n"
