"""`yardmaster login` and a browser that is signed in to a real portal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.integration.client.conftest import PASSWORD
from tests.real.opened import signed_in
from yardmaster_client import Yardmaster, device
from yardmaster_client.cli import accounts
from yardmaster_client.errors import PortalError

pytestmark = pytest.mark.slow

WITHOUT = {"YARDMASTER_URL": "", "YARDMASTER_TOKEN": ""}


@pytest.fixture
def browser(ada: Yardmaster, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Says what the user answers on the page as soon as the command shows its code. No time passes between polls."""
    url, shown = ada.transport.url, accounts._show_code
    cookies = signed_in(url, "ada")

    def answer(answered: str) -> None:
        def show(asked: device.Asked, *, opens: bool) -> None:
            shown(asked, opens=opens)
            with httpx2.Client(headers={"Cookie": cookies}) as client:
                page = client.get(asked.address_with_code).text
                secret = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
                form = {"csrfmiddlewaretoken": secret, "code": asked.user_code, "answer": answered}
                client.post(asked.address, data=form, headers={"Referer": asked.address}).raise_for_status()

        monkeypatch.setattr(accounts, "_show_code", show)

    monkeypatch.setattr(device, "sign_in", partial(device.sign_in, sleep=lambda seconds: None))
    return answer


def test_a_confirmed_sign_in_is_remembered_and_listed(yardmaster, ada, browser, tmp_path: Path):
    browser("confirm")
    done = yardmaster("login", ada.transport.url, **WITHOUT)
    assert done.code == 0, done.err
    assert f"{ada.transport.url}/device/?code=" in done.err
    token = json.loads((tmp_path / ".config" / "yardmaster" / "credentials.json").read_text())["token"]
    assert token not in done.err + done.out
    assert yardmaster("whoami", "--json", **WITHOUT).json["username"] == "ada"
    assert any(one.name.startswith("yardmaster on ") for one in ada.tokens())
    assert yardmaster("logout", **WITHOUT).code == 0
    assert yardmaster("whoami", YARDMASTER_TOKEN=token).code == 1


def test_scopes_are_asked_for(yardmaster, ada, browser):
    browser("confirm")
    assert yardmaster("login", ada.transport.url, "--scope", "read", **WITHOUT).code == 0
    assert yardmaster("jobs", "list", **WITHOUT).code == 0
    assert "scopes are read" in yardmaster("tokens", "create", "stronger", **WITHOUT).err


def test_a_refused_sign_in_is_exit_1_and_keeps_nothing(yardmaster, ada, browser, tmp_path: Path):
    browser("refuse")
    done = yardmaster("login", ada.transport.url, **WITHOUT)
    assert done.code == 1
    assert "refused" in done.err
    assert not (tmp_path / ".config").exists()


def test_a_pasted_token_may_come_from_a_pipe(yardmaster, ada, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{ada.transport.token}\n"))
    assert yardmaster("login", ada.transport.url, "--token", "-", **WITHOUT).code == 0
    assert yardmaster("whoami", **WITHOUT).code == 0


def test_a_portal_without_such_sign_ins_asks_for_name_and_password(yardmaster, ada, monkeypatch: pytest.MonkeyPatch):
    def unknown(*_: object, **__: object) -> str:
        raise PortalError(404, "not_found", "There is nothing at /api/v1/auth/device/")

    answers = {"Name": "ada", "Password": PASSWORD}
    monkeypatch.setattr(device, "sign_in", unknown)
    monkeypatch.setattr("typer.prompt", lambda text, **options: answers[text])
    assert yardmaster("login", ada.transport.url, **WITHOUT).code == 0
    assert yardmaster("whoami", "--json", **WITHOUT).json["username"] == "ada"
