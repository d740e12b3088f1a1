"""What is said of everything that can be wrong, by a real Ignite with TLS and passwords: what it is, and the remedy."""

from __future__ import annotations

import pytest

from tests.integration.ignite.conftest import in_task
from tests.real.ignite import Ignite

pytestmark = [pytest.mark.ignite, pytest.mark.tensorflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def said(secure: Ignite) -> dict:
    return in_task(secure, "with_ignite.py", "bad_input", secure.keys)


@pytest.mark.parametrize("name", ["right", "sealed key"])
def test_with_the_right_certificate_and_password_it_opens(said: dict, name: str) -> None:
    assert said[name] == ""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("wrong password", "ignite_sign_in", "as the user 'ignite': The user name or password is incorrect"),
        ("no user", "ignite_sign_in", "refuses the sign-in of this script without a user"),
        ("expired", "ignite_certificate", "expired.pem cannot be used: it has expired, on "),
        ("no certificate", "ignite_certificate", "If it requires TLS, give certfile"),
        ("sealed key, wrong password", "ignite_certificate", "the key needs a password: cert_password is wrong"),
        ("no CA", "ignite_certificate", "is not accepted: self-signed certificate"),
        ("unknown cache", "ignite_cache", "There is no cache 'one-od'. The nearest names: 'one-odd'"),
        ("table", "ignite_cache", "The nearest names: 'SQL_PUBLIC_KITTENS'"),
        ("no tensor", "ignite_type", "the field val.pairs, a Map and the field val.price, a BigDecimal cannot become"),
        ("null", "ignite_null", "the field val.votes is null in "),
        ("empty", "ignite_cache", "'SQL_PUBLIC_EMPTY' has no rows"),
        ("no partition", "ignite_partition", "names the partition 8, and the cache has 8"),
        ("no server", "ignite_unavailable", "No Ignite server can be reached: Ignite at 127.0.0.1:1"),
        ("bad query", "ignite_query", 'Column "NOTHING" not found'),
        ("decimal", "ignite_type", "the field X, a BigDecimal cannot become a tensor"),
        ("write", "ignite_query", "Ignite refuses the query"),
    ],
)
def test_what_is_wrong_has_a_code_and_is_named(said: dict, name: str, code: str, words: str) -> None:
    assert said[name].startswith(code + ": ")
    assert words in said[name]
