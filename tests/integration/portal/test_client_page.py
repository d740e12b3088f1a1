"""The page of the client, and the wheel that it leads to."""

from __future__ import annotations

import hashlib
import re

import pytest
from django.conf import settings
from django.test import Client

from apps.client.wheel import wheel

pytestmark = pytest.mark.django_db


def test_the_page_is_open_and_links_to_the_wheel_with_its_checksum(client: Client):
    page = client.get("/client/").content.decode()
    link = re.search(r'href="(/client/([^"#]+\.whl)#sha256=([0-9a-f]{64}))"', page)
    assert link
    answer = client.get(link[1].partition("#")[0])
    assert hashlib.sha256(answer.content).hexdigest() == link[3] == wheel().sha256
    assert f"pip install {settings.PUBLIC_URL}/client/{link[2]}" in page


def test_the_wheel_is_a_file_that_is_sent_once(client: Client):
    first = client.get(f"/client/{wheel().name}")
    assert (first.status_code, first["Content-Type"]) == (200, "application/zip")
    assert wheel().name in first["Content-Disposition"]
    assert first["Cache-Control"] == "public, no-cache"
    assert "Set-Cookie" not in first.headers
    again = client.get(f"/client/{wheel().name}", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    changed = client.get(f"/client/{wheel().name}", headers={"If-None-Match": '"another"'})
    assert changed.content == first.content


@pytest.mark.parametrize("name", ["yardmaster_client-0.0.1-py3-none-any.whl", "..%2fsettings.py", "x"])
def test_there_is_no_other_file(client: Client, name: str):
    assert client.get(f"/client/{name}").status_code == 404


def test_account_tokens_and_home_show_the_command_that_installs_it(client: Client, ada):
    client.force_login(ada)
    for address in ("/", "/account/", "/account/tokens/"):
        page = client.get(address).content.decode()
        assert f"/client/{wheel().name}" in page
        assert "pip install http" in page
