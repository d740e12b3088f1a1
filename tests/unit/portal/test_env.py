"""Variables are read with their type, or refused with their name."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from portal import env


def test_a_flag_reads_the_usual_words(monkeypatch):
    for word, expected in {"1": True, "yes": True, "ON": True, "0": False, "false": False, "": True}.items():
        monkeypatch.setenv("YARDMASTER_X", word)
        assert env.flag("YARDMASTER_X", default=True) is expected


@pytest.mark.parametrize(
    ("read", "value", "said"),
    [
        (env.flag, "perhaps", "YARDMASTER_X='perhaps'"),
        (env.table, "[1]", "YARDMASTER_X='[1]' is no JSON object"),
        (env.table, "{", "YARDMASTER_X is no JSON"),
        (lambda name: env.number(name, 1), "ten", "YARDMASTER_X='ten'"),
        (lambda name: env.number(name, 1, least=5), "4", "at least 5"),
        (lambda name: env.database(name, Path("x")), "mysql://h/d", "YARDMASTER_X begins with 'mysql'"),
        (lambda name: env.secret(name, Path("absent.key")), "short", "YARDMASTER_X is missing or shorter"),
    ],
)
def test_a_wrong_value_is_refused_by_name(monkeypatch, read, value, said):
    monkeypatch.setenv("YARDMASTER_X", value)
    with pytest.raises(ImproperlyConfigured, match="YARDMASTER_X"):
        read("YARDMASTER_X")
    with pytest.raises(ImproperlyConfigured) as caught:
        read("YARDMASTER_X")
    assert said in str(caught.value)


def test_a_fingerprint_is_stable_and_tells_secrets_and_purposes_apart():
    secret = "s" * 40
    first = env.fingerprint(secret, "installation")
    assert first == env.fingerprint(secret, "installation") == "7521b162faf2c94f"
    assert len({first, env.fingerprint("t" * 40, "installation"), env.fingerprint(secret, "another")}) == 3


@pytest.mark.parametrize(
    ("value", "host", "port", "is_starttls", "is_tls"),
    [
        ("smtp://ada:p%40ss@mail.example.org", "mail.example.org", 587, True, False),
        ("smtp://ada:p%40ss@mail.example.org:25?starttls=no", "mail.example.org", 25, False, False),
        ("smtps://ada:p%40ss@mail.example.org", "mail.example.org", 465, False, True),
    ],
)
def test_a_mail_server_is_read_from_its_url(monkeypatch, value, host, port, is_starttls, is_tls):
    monkeypatch.setenv("YARDMASTER_X", value)
    server = env.mail_server("YARDMASTER_X")
    assert (server.host, server.port, server.use_starttls, server.use_tls) == (host, port, is_starttls, is_tls)
    assert (server.user, server.password, server.is_real) == ("ada", "p@ss", True)


@pytest.mark.parametrize("value", ["", "console:"])
def test_without_a_mail_server_mail_is_printed(monkeypatch, value):
    monkeypatch.setenv("YARDMASTER_X", value)
    server = env.mail_server("YARDMASTER_X")
    assert server.backend.endswith("console.EmailBackend")
    assert not server.is_real


@pytest.mark.parametrize(
    "value",
    ["mail.example.org", "http://h", "smtp://", "smtp://a:secret@h:port", "smtp://a:secret@h?tls=1", "smtps://h:99999"],
)
def test_a_mail_server_that_is_none_is_refused_and_its_password_not_repeated(monkeypatch, value):
    monkeypatch.setenv("YARDMASTER_X", value)
    with pytest.raises(ImproperlyConfigured, match="YARDMASTER_X") as caught:
        env.mail_server("YARDMASTER_X")
    assert "secret" not in str(caught.value)


def test_the_secret_comes_from_the_file_when_the_variable_is_not_set(monkeypatch, tmp_path):
    monkeypatch.delenv("YARDMASTER_X", raising=False)
    (tmp_path / "secret.key").write_text("s" * 40 + "\n")
    assert env.secret("YARDMASTER_X", tmp_path / "secret.key") == "s" * 40


def test_a_postgres_address_becomes_djangos_settings(monkeypatch):
    monkeypatch.setenv("YARDMASTER_X", "postgres://me:p%40ss@db:5433/yard?sslmode=require")
    found = env.database("YARDMASTER_X", Path("x"))
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "me", "p@ss", "db", "5433", "yard",
    )  # fmt: skip
    assert found["OPTIONS"] == {"sslmode": "require"}


def test_postgres_over_a_unix_socket_takes_the_folder_as_host(monkeypatch):
    monkeypatch.setenv("YARDMASTER_X", "postgres:///yard?host=/run/pg")
    assert env.database("YARDMASTER_X", Path("x"))["HOST"] == "/run/pg"


def test_sqlite_paths_are_absolute_and_default_to_the_home(monkeypatch, tmp_path):
    monkeypatch.delenv("YARDMASTER_X", raising=False)
    assert env.database("YARDMASTER_X", tmp_path / "portal.sqlite3")["NAME"] == str(tmp_path / "portal.sqlite3")
    monkeypatch.setenv("YARDMASTER_X", "sqlite:////srv/a.sqlite3")
    assert env.database("YARDMASTER_X", tmp_path / "b")["NAME"] == "/srv/a.sqlite3"


def test_a_home_with_a_long_path_gets_a_short_place_for_its_sockets(tmp_path):
    short, deep = Path("/srv/yard"), Path("/" + "d" * 120)
    assert env.socket_folder(short) == short / "run"
    assert len(str(env.socket_folder(deep))) < 90
    assert env.socket_folder(deep) != env.socket_folder(Path("/" + "e" * 120))
