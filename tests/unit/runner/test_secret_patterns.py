"""Secrets are taken out of the log in the forms in which programs print them."""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner import secret_files
from yardmaster_runner.exits import CannotRun
from yardmaster_runner.masking import TokenMask
from yardmaster_runner.order import Secret
from yardmaster_runner.secret_patterns import MOST, is_too_short, patterns_of

VALUE = 's3cr3t/with+signs=and "quotes" & ümlaut'


def masked(text: bytes, *secrets: Secret) -> bytes:
    mask = TokenMask(tuple, patterns_of(secrets)[0])
    return b"".join(mask.feed(text[at : at + 7]) for at in range(0, len(text), 7)) + mask.finish()


def secret(value: str, name: str = "KEY") -> Secret:
    return Secret(name, "ENV", "", value)


@pytest.mark.parametrize(
    "form",
    [
        VALUE.encode(),
        repr(VALUE)[1:-1].encode(),
        json.dumps(VALUE)[1:-1].encode(),
        urllib.parse.quote(VALUE, safe="").encode(),
        urllib.parse.quote_plus(VALUE).encode(),
        base64.b64encode(VALUE.encode()).rstrip(b"=")[:-1],
        base64.urlsafe_b64encode(VALUE.encode()).rstrip(b"=")[:-1],
    ],
)
def test_a_value_is_masked_in_the_usual_encodings(form):
    found = masked(b"before " + form + b" after\n", secret(VALUE))
    assert form not in found
    assert found.startswith(b"before [secret KEY]")
    assert found.endswith(b" after\n")


@given(st.binary(max_size=5), st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=40))
def test_basic_authentication_is_masked_wherever_the_value_begins(before, value):
    header = b"Basic " + base64.b64encode(before + value.encode() + b"x")
    found = masked(header, secret(value))
    assert b"[secret KEY]" in found
    left = found.replace(b"[secret KEY]", b"").removeprefix(b"Basic ")
    assert len(left) <= 8 + 4


def test_each_line_of_a_value_is_masked_and_short_ones_are_not():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\nAoGBAJ0c1J8uHk3f0p9m2xkqv4bTqS\n"
    found = masked(b"k: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort words stay\n", secret(key))
    assert found == b"k: [secret KEY]\nshort words stay\n"
    wrapped = base64.encodebytes((key * 3).encode())
    assert all(line not in masked(wrapped, secret(key * 3)) for line in wrapped.splitlines()[:-1])


def test_a_value_that_is_too_short_is_not_masked_and_said_to_be():
    assert is_too_short(secret("1234567"))
    assert masked(b"1234567\n", secret("1234567")) == b"1234567\n"
    assert not is_too_short(secret("12345678"))


def test_a_long_value_is_masked_in_pieces():
    value = "".join(f"{number:x}." for number in range(6000))
    found = masked(b"a " + value.encode() + b" b\n", secret(value))
    assert set(found.replace(b"[secret KEY]", b"")) == set(b"a  b\n")


def test_the_number_of_patterns_is_bounded_and_the_log_can_say_so():
    value = "\n".join(f"line number {number}" for number in range(MOST + 50))
    patterns, partly = patterns_of([secret("small-secret-1", "SMALL"), secret(value, "LARGE")])
    assert len(patterns) == MOST
    assert "LARGE" in partly
    assert (b"small-secret-1", b"[secret SMALL]") in patterns


def test_the_longest_pattern_wins():
    found = masked(b"x password-and-more y\n", secret("password", "A"), secret("password-and-more", "B"))
    assert found == b"x [secret B] y\n"


@given(st.lists(st.sampled_from(["password", "-and-more", "-and-less", "word-and-more!", "pass", " "]), max_size=8))
def test_values_that_overlap_leave_nothing_however_the_output_is_cut(words):
    text = "".join(words).encode()
    found = masked(text, secret("password", "A"), secret("password-and-more", "B"), secret("word-and-more!", "C"))
    assert not any(one in found for one in (b"password", b"password-and-more", b"word-and-more!"))


def test_messages_are_masked_as_a_whole():
    mask = TokenMask(lambda: ["ymt." + "0" * 20], patterns_of([secret("hunter2-hunter2")])[0])
    assert mask.text(f"failed: hunter2-hunter2 ymt.{'0' * 20}") == "failed: [secret KEY] [task token]"


def test_masking_keeps_up_with_a_script_that_prints():
    """Generous: about 3 ms per MiB and secret here. A million lines of 100 bytes are 95 MiB."""
    mask = TokenMask(tuple, patterns_of([secret("".join(f"{n:02x}" for n in range(20)))])[0])
    chunk = b"".join(b"step=%d loss=0.12345 accuracy=0.98765 examples/sec: 1234.5\n" % n for n in range(18_000))
    begun = time.process_time()
    assert mask.feed(chunk) == chunk
    assert time.process_time() - begun < 0.3


def test_files_are_private_and_gone_afterwards(tmp_path):
    folder = str(tmp_path / "secrets")
    secret_files.write(folder, [Secret("A", "", "a/b/key.json", "{}\n"), Secret("B", "B", "", "x")])
    path = tmp_path / "secrets" / "a" / "b" / "key.json"
    assert path.read_bytes() == b"{}\n"
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert oct((tmp_path / "secrets").stat().st_mode & 0o777) == "0o700"
    secret_files.write(folder, [Secret("A", "", "other", "y")])
    assert os.listdir(folder) == ["other"]
    os.chmod(folder, 0o500)
    secret_files.remove(folder)
    assert not os.path.exists(folder)


def test_no_folder_is_made_for_variables_alone_and_no_path_leads_out(tmp_path):
    folder = str(tmp_path / "secrets")
    secret_files.write(folder, [Secret("A", "A", "", "x")])
    assert not os.path.exists(folder)
    with pytest.raises(CannotRun):
        secret_files.write(folder, [Secret("A", "", "../out", "x")])
    assert not (tmp_path / "out").exists()


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("stays")
    (tmp_path / "secrets").symlink_to(tmp_path / "other")
    secret_files.write(str(tmp_path / "secrets"), [Secret("A", "", "key", "x")])
    assert (tmp_path / "other" / "file").read_text() == "stays"
    assert (tmp_path / "secrets" / "key").read_text() == "x"


def test_a_value_is_not_shown_with_its_secret():
    assert "hunter2" not in repr(secret("hunter2-hunter2"))
