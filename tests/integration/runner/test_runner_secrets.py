"""Secrets in a task as an engine starts it: the script has them, its log does not."""

from __future__ import annotations

import json
import textwrap

VALUE = "hunter2-hunter2-hunter2"
SHOW = """
    import os, stat, sys
    path = os.environ["NETRC"]
    print("env", os.environ["TOKEN"])
    print("file", open(path).read().strip(), oct(os.stat(path).st_mode & 0o777), sys.argv[-1] == path)
    print("folder", path == os.path.join(os.environ["SECRETS_DIR"], ".netrc"))
    sys.stdout.flush()
    sys.stderr.write("pieces " + os.environ["TOKEN"][:12])
    sys.stderr.flush()
    sys.stderr.write(os.environ["TOKEN"][12:] + "\\n")
    raise ValueError("bad token " + os.environ["TOKEN"])
"""


def test_a_script_has_its_secrets_and_its_log_does_not(task, portal):
    portal.orders(textwrap.dedent(SHOW), spec_arguments=["--out=1", "$SECRETS_DIR/.netrc"])
    portal.order["secrets"] = [
        {"name": "API_TOKEN", "env": "TOKEN", "file": "", "value": VALUE},
        {"name": "NETRC", "env": "NETRC", "file": ".netrc", "value": "machine example.org password swordfish99\n"},
    ]
    assert task.run() == 1
    lines = portal.lines()
    assert lines[0] == b"env [secret API_TOKEN]"
    assert lines[1] == b"file [secret NETRC] 0o600 True"
    assert lines[2] == b"folder True"
    assert b"pieces [secret API_TOKEN]" in lines
    everything = b"\n".join(lines) + json.dumps(portal.reports).encode() + task.said
    everything += b"".join(path.read_bytes() for path in task.work.rglob("*") if path.is_file())
    assert VALUE.encode() not in everything
    assert b"swordfish99" not in everything
    assert "[secret API_TOKEN]" in portal.reports[-1]["message"]
    assert not (task.work / "secrets").exists()


def test_a_secret_that_is_gone_ends_the_start_with_a_reason(task, portal):
    portal.orders("print('never')\n")
    portal.trouble = lambda method, path: 404 if path.startswith("order/") else None
    portal.trouble_code = "secret_missing"
    assert task.run() == 90
    ending = json.loads((task.work / "exit.json").read_text())
    assert ending["reason"] == "SecretUnavailable"


def test_a_secret_that_cannot_be_masked_is_named_in_the_log(task, portal):
    portal.orders("import os\nprint(os.environ['PIN'])\n")
    portal.order["secrets"] = [{"name": "PIN", "env": "PIN", "file": "", "value": "1234"}]
    assert task.run() == 0
    assert portal.lines() == [b"yardmaster: the secret PIN is too short to be masked here", b"1234"]
