"""The `yardmaster` command against a real portal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.client.conftest import PASSWORD
from tests.real.portal import ROOT, RealPortal

pytestmark = pytest.mark.slow


def test_the_command_runs_as_a_program(ada, tmp_path: Path):
    told = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "platform")}
    told |= {"YARDMASTER_URL": ada.transport.url, "YARDMASTER_TOKEN": ada.transport.token}
    command = [sys.executable, "-m", "yardmaster_client", "whoami", "--json"]
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["username"] == "ada"
    refused = subprocess.run([*command[:-2], "nonsense"], env=told, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "nonsense" in refused.stderr


def test_signing_in_is_remembered_by_its_owner_alone(yardmaster, ada, tmp_path: Path):
    without = {"YARDMASTER_URL": "", "YARDMASTER_TOKEN": ""}
    assert yardmaster("whoami", **without).code == 2
    refused = yardmaster("login", "--url", ada.transport.url, "-u", "ada", "--password", "wrong", **without)
    assert refused.code == 1
    done = yardmaster("login", "--url", ada.transport.url, "-u", "ada", "--password", PASSWORD, **without)
    assert done.code == 0, done.err
    file = tmp_path / ".config" / "yardmaster" / "credentials.json"
    assert file.stat().st_mode & 0o777 == 0o600
    who = yardmaster("whoami", "--json", **without)
    assert who.json["username"] == "ada"
    token = json.loads(file.read_text())["token"]
    assert yardmaster("logout", **without).code == 0
    assert yardmaster("whoami", **without).code == 2
    assert yardmaster("whoami", YARDMASTER_TOKEN=token).code == 1, "signing out revokes the token"


def test_signing_out_can_leave_the_token_good_and_waits_for_no_portal(yardmaster, ada, tmp_path: Path):
    without = {"YARDMASTER_URL": "", "YARDMASTER_TOKEN": ""}
    login = ["login", "--url", ada.transport.url, "--token", ada.transport.token]
    assert yardmaster(*login, **without).code == 0
    assert "stays valid" in yardmaster("logout", "--keep-token", **without).err
    assert yardmaster("whoami").code == 0
    file = tmp_path / ".config" / "yardmaster" / "credentials.json"
    file.write_text(json.dumps({"url": "http://127.0.0.1:9", "token": "x"}))
    done = yardmaster("logout", **without)
    assert (done.code, file.exists()) == (0, False)
    assert "stays valid" in done.err


def test_a_portal_that_does_not_answer_is_exit_3(yardmaster):
    done = yardmaster("whoami", YARDMASTER_URL="http://127.0.0.1:9")
    assert done.code == 3
    assert "does not answer" in done.err


def test_a_refused_token_is_exit_1(yardmaster):
    done = yardmaster("jobs", "list", YARDMASTER_TOKEN="x" * 64)
    assert done.code == 1
    assert "token" in done.err


@pytest.mark.parametrize("words", [["jobs", "launch"], ["jobs", "frobnicate"], ["jobs", "logs", "x", "--index", "1"]])
def test_wrong_usage_is_exit_2(yardmaster, words):
    assert yardmaster(*words).code == 2


def test_a_dataset_is_uploaded_shown_previewed_downloaded_and_deleted(yardmaster, tmp_path: Path):
    folder = tmp_path / "numbers"
    (folder / "deep").mkdir(parents=True)
    (folder / "table.csv").write_text("a,b\n1,2\n3,4\n")
    (folder / "deep" / "empty.txt").touch()
    done = yardmaster("datasets", "upload", folder, "--note", "first", "--json")
    assert done.code == 0, done.err
    assert (done.json["name"], done.json["latest"]["number"], done.json["latest"]["files"]) == ("numbers", 1, 2)
    (folder / "table.csv").write_text("a,b\n5,6\n")
    assert yardmaster("datasets", "upload", folder, "--json").json["latest"]["number"] == 2
    assert "numbers" in yardmaster("datasets", "list").out
    shown = yardmaster("datasets", "show", "numbers", "--json").json
    assert [version["number"] for version in shown["versions"]] == [2, 1]
    assert sorted(file["path"] for file in shown["files"]) == ["deep/empty.txt", "table.csv"]
    assert "table.csv" in yardmaster("datasets", "show", "numbers@1").out
    listed = yardmaster("datasets", "ls", "numbers", "--json").json
    assert [(one["path"], one["files"], one["is_folder"]) for one in listed if one["path"] == "table.csv"] == [
        ("table.csv", 1, False)
    ]
    assert "table.csv" in yardmaster("datasets", "ls", "numbers").out
    assert yardmaster("datasets", "ls", "numbers", "none").code == 1
    assert "5" in yardmaster("datasets", "preview", "numbers", "table.csv").out
    assert yardmaster("datasets", "download", "numbers@1", "--to", tmp_path / "copy").code == 0
    assert (tmp_path / "copy" / "table.csv").read_text() == "a,b\n1,2\n3,4\n"
    assert (tmp_path / "copy" / "deep" / "empty.txt").read_text() == ""
    assert yardmaster("datasets", "show", "numbers@7").code == 1
    assert yardmaster("datasets", "delete", "numbers", "--yes").code == 0
    assert yardmaster("datasets", "show", "numbers").code == 1


def test_a_job_is_checked_launched_found_explained_and_stopped(yardmaster, script, job_file):
    upload = yardmaster("code", "upload", script)
    assert upload.code == 0, upload.err
    check = yardmaster("jobs", "check", job_file, "--json")
    assert check.json["verdict"] in ("fits_now", "waits"), check.out
    launched = yardmaster("jobs", "launch", job_file, "--json")
    assert launched.code == 0, launched.err
    job = launched.json
    assert (job["name"], job["phase"]) == ("hello", "QUEUED")
    for reference in (job["id"], "hello", job["id"][:18]):
        assert yardmaster("jobs", "show", reference, "--json").json["job"]["id"] == job["id"]
    assert "hello" in yardmaster("jobs", "list").out
    shown = yardmaster("jobs", "list", "--metric", "loss", "--column", "queue_time", "--sort", "-loss")
    assert ("hello" in shown.out, "LOSS" in shown.out, "QUEUE TIME" in shown.out) == (True, True, True), shown.err
    assert "hello" not in yardmaster("jobs", "list", "--where", "loss < 0.3").out
    assert "metric:NAME" in yardmaster("jobs", "list", "--column", "nonsense").err
    assert "QUEUED" in yardmaster("jobs", "why", "hello").out
    assert yardmaster("jobs", "delete", "hello", "--yes").code == 1
    assert yardmaster("jobs", "stop", "hello", "--json").json["wanted"] == "STOP"
    assert yardmaster("jobs", "show", "no-such-job").code == 1


def test_a_notebook_is_for_servers_and_only_while_they_are_up(yardmaster, script, job_file, tmp_path: Path):
    yardmaster("code", "upload", script)
    assert yardmaster("jobs", "launch", job_file, "--set", "name=alone").code == 0
    refused = yardmaster("jobs", "notebook", "alone")
    assert refused.code == 1
    assert "it runs its own script" in refused.err
    servers = tmp_path / "servers.yaml"
    servers.write_text("name: servers\nstrategy: in_graph\nroles:\n  ps: {cpu: 0.1, memory: 64Mi}\n"
                       "  worker: {cpu: 0.1, memory: 64Mi}\n")  # fmt: skip
    assert yardmaster("jobs", "launch", servers).code == 0
    waits = yardmaster("jobs", "notebook", "servers")
    assert waits.code == 1
    assert "not running" in waits.err
    for name in ("alone", "servers"):
        assert yardmaster("jobs", "stop", name).code == 0


def test_values_are_set_from_the_command_line_and_refusals_name_field_and_remedy(yardmaster, script, job_file):
    yardmaster("code", "upload", script)
    done = yardmaster("jobs", "launch", job_file, "--set", "roles.worker.replicas=0", "--set", "rolles=1")
    assert done.code == 1
    assert "roles.worker.replicas" in done.err
    assert "rolles" in done.err
    never = yardmaster("jobs", "check", job_file, "--set", "roles.worker.memory=900Ti")
    assert never.code == 1
    assert "never" in never.out


def test_code_is_uploaded_at_launch_only_when_it_changed(yardmaster, script, job_file):
    numbers = []
    for text in ("print(1)\n", "print(1)\n", "print(2)\n"):
        (script / "train.py").write_text(text)
        done = yardmaster("jobs", "launch", job_file, "--code", script, "--set", "code=fresh", "--json")
        assert done.code == 0, done.err
        version = done.json["spec"]["code"]
        numbers.append(version)
    assert numbers[0] == numbers[1] != numbers[2]


def test_a_wrong_job_file_is_exit_2_with_its_line(yardmaster, tmp_path: Path):
    file = tmp_path / "wrong.yaml"
    file.write_text("name: x\nstrategy: single\nname: y\n")
    done = yardmaster("jobs", "launch", file)
    assert done.code == 2
    assert "wrong.yaml:3:1" in done.err


def test_namespaces_and_tokens(yardmaster, ada):
    assert "ada" in yardmaster("namespaces", "list").out
    assert "cpu" in yardmaster("namespaces", "show", "ada").out
    own = ada.me()["namespaces"][0]
    limits = dict.fromkeys(own["usage"]["hard"]) | {"extended": {"amd.com/gpu": 4}}
    ada.transport.put(f"namespaces/{own['id']}/quota/", limits)
    assert re.search(r"amd.com/gpu +0 +0 +4\s", yardmaster("namespaces", "show", "ada").out)
    made = yardmaster("tokens", "create", "for scripts", "--scope", "read", "--days", "1", "--json").json
    assert yardmaster("jobs", "list", YARDMASTER_TOKEN=made["token"]).code == 0
    assert "for scripts" in yardmaster("tokens", "list").out
    assert yardmaster("tokens", "revoke", "for scripts").code == 0
    assert yardmaster("jobs", "list", YARDMASTER_TOKEN=made["token"]).code == 1


def test_all_tokens_are_revoked_at_once(yardmaster, light_portal):
    mine = light_portal.token_of("grace")
    made = yardmaster("tokens", "create", "one", "--json", YARDMASTER_TOKEN=mine).json
    assert made["expires_at"], "it expires by default"
    refused = yardmaster("tokens", "create", "other", "--never-expires", YARDMASTER_TOKEN=mine)
    assert (refused.code, "must expire" in refused.err) == (1, True)
    assert yardmaster("tokens", "revoke", "one", "--all", YARDMASTER_TOKEN=mine).code == 2
    assert yardmaster("tokens", "revoke", YARDMASTER_TOKEN=mine).code == 2
    assert "Revoked 2 tokens" in yardmaster("tokens", "revoke", "--all", YARDMASTER_TOKEN=mine).err
    for secret in (mine, made["token"]):
        assert yardmaster("jobs", "list", YARDMASTER_TOKEN=secret).code == 1
    assert yardmaster("jobs", "list").code == 0, "those of others stay"


def test_an_administrator_locks_a_user_out(yardmaster, light_portal):
    theirs = light_portal.token_of("heidi")
    assert yardmaster("users", "lock", "ada", YARDMASTER_TOKEN=theirs).code == 1
    assert "Revoked 1 token of Heidi." in yardmaster("users", "revoke-tokens", "Heidi").err
    assert "0 jobs are being stopped" in yardmaster("users", "lock", "heidi", "--stop-jobs").err
    login = ("login", "--url", light_portal.url, "-u", "heidi", "--password", PASSWORD)
    assert yardmaster(*login, YARDMASTER_TOKEN="").code == 1
    assert "can sign in again" in yardmaster("users", "unlock", "heidi").err
    assert yardmaster(*login, YARDMASTER_TOKEN="").code == 0
    assert yardmaster("users", "lock", "no-such-user").code == 1


def test_the_audit_is_listed_and_exported(yardmaster, ada, tmp_path: Path):
    rows = yardmaster("audit", "list", "--action", "token.create", "--person", "ADA", "--limit", "1", "--json").json
    assert [(row["action"], row["actor_name"]) for row in rows] == [("token.create", "ada")]
    assert "token.create" in yardmaster("audit", "list").out
    file = tmp_path / "audit.jsonl"
    assert yardmaster("audit", "export", "--as", "jsonl", "-o", file, "--action", "token.create").code == 0
    assert {json.loads(line)["action"] for line in file.read_text().splitlines()} == {"token.create"}
    assert yardmaster("audit", "export", "-o", file).code == 2, "a file that is there is kept"
    refused = yardmaster("audit", "export", "--as", "xlsx", "-o", tmp_path / "other")
    assert (refused.code, "csv or jsonl" in refused.err) == (1, True)


def test_models_are_listed(yardmaster):
    assert json.loads(yardmaster("models", "list", "--json").out) == []
    assert yardmaster("models", "download", "none").code == 1


_MAKE_VERSIONS = """
import json
from apps.accounts.models import User
from apps.registry.contents import contents_read
from tests.integration.model_versions import job_of, version_of
from tests.unit.core.test_saved_model import saved_model
ada = User.objects.get(username="ada")
for n in (1, 2):
    version = version_of(job_of(ada), content={"saved_model.pb": saved_model()}, source={"arguments": [f"--lr={n}"]})
contents_read(version.pk)
print(json.dumps(str(version.pk)))
"""


def test_a_model_is_shown_promoted_compared_deleted_and_restored(yardmaster, light_portal: RealPortal):
    second = json.loads(light_portal.script(_MAKE_VERSIONS).splitlines()[-1])
    assert "digits" in yardmaster("models", "list").out
    shown = yardmaster("models", "show", "digits").out
    assert "digits@2" in shown
    assert "serving_default" in shown
    assert "--lr=2" in shown
    assert yardmaster("models", "promote", "digits@1", "--note", "best").code == 0
    assert yardmaster("models", "promote", "digits@2", "--to", "nowhere").code == 1
    assert yardmaster("models", "show", "digits@production", "--json").json["version"]["number"] == 1
    listed = yardmaster("models", "versions", "digits").out
    assert "production" in listed
    assert "best" in listed
    compared = yardmaster("models", "compare", "digits", "1", "2").out
    assert ["--lr", "1", "2"] in [line.split() for line in compared.splitlines()]
    assert yardmaster("models", "delete", "digits", "--yes").code == 1, "a version is in production"
    assert yardmaster("models", "delete", "digits@2", "--yes").code == 0
    assert yardmaster("models", "show", "digits@2").code == 1
    assert yardmaster("models", "restore", second).code == 0
    assert yardmaster("models", "promote", "digits@1", "--to", "none").code == 0
    assert yardmaster("models", "delete", "digits", "--yes").code == 0
    assert json.loads(yardmaster("models", "list", "--json").out) == []
    assert yardmaster("models", "restore", "digits").code == 0
    assert yardmaster("models", "delete", "digits", "--now", "--yes").code == 0
    assert yardmaster("models", "restore", "digits").code == 1


def test_a_command_or_another_entry_point_takes_the_place_of_the_files_own(yardmaster, script, job_file):
    def spec_of(*options):
        done = yardmaster("jobs", "launch", job_file, "--code", script, "--set", "arguments=[--x]", *options, "--json")
        assert done.code == 0, done.err
        spec = done.json["spec"]
        return spec["entry_point"], spec["command"], spec["arguments"], spec["tf1"]

    assert spec_of("--command", "python train.py; date") == ("", "python train.py; date", [], False)
    assert spec_of("--entry-point", "-m train", "--tf1") == ("-m train", "", ["--x"], True)
    done = yardmaster("jobs", "check", job_file, "--command", "make", "--entry-point", "train.py")
    assert "A command is in the place of entry_point" in done.out + done.err
