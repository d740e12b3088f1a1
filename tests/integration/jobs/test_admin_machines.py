"""The machines of the engine `hosts` as administrators list them: on pages and in the API, with an SSH server that
shows its host key."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest
from django.utils import timezone

from apps.administration.machines import host_listed, source
from apps.audit.models import AuditEvent
from apps.jobs.engines.configured import engine_named
from apps.jobs.engines.machine_list import hosts_listed
from apps.jobs.engines.snapshots import engines_look
from apps.jobs.models import EngineNow, HostMachine
from apps.namespaces.models import Namespace
from portal.engine_settings import LISTED_IN_DATABASE
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.records import Placement, Share
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec

PAGE, API = "/admin/machines/", "/api/v1/admin/machines/"
GPU_1 = {"name": "gpu-1", "address": "10.0.0.11", "user": "train"}


@pytest.fixture
def listed(db, settings, tmp_path) -> Iterator[Path]:
    """The engine `hosts` with its list in the database; the folder that it has."""
    options = {"root": tmp_path / "hosts", "machines": LISTED_IN_DATABASE, "owner": "us", "command": ["/bin/true"]}
    settings.YARDMASTER_ENGINES = {"hosts": {"class": "yardmaster.engines.hosts.HostsEngine", "options": options}}
    settings.YARDMASTER_DEFAULT_ENGINE = "hosts"
    yield tmp_path
    engine_named("hosts").close()


@pytest.fixture
def desk(listed, admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(listed, admin, signed_in):
    return signed_in(admin)


def text_of(answer, status: int = 200) -> str:
    assert answer.status_code == status, answer.content[:2000]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


@contextlib.contextmanager
def ssh_server(*keys: asyncssh.SSHKey) -> Iterator[int]:
    """The port of one on this machine that shows these host keys, and lets no one in."""
    ready, over, found = threading.Event(), threading.Event(), list[int]()

    async def serve() -> None:
        async with asyncssh.listen("127.0.0.1", 0, server_host_keys=list(keys)) as server:
            found.append(server.get_port())
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(20)
        yield found[0]
    finally:
        over.set()
        thread.join(20)


def place_a_task(machine: str) -> JobKey:
    """As if a run of the portal had a task there."""
    worker = RoleSpec(1, Resources(1, 1 << 30, 0))
    spec = TrainingSpec("digits", Strategy.SINGLE, {Role.WORKER: worker}, new_id(), "train.py")
    key = JobKey(new_id(), new_id(), 1)
    shares = {machine: Share("p", "10.0.0.11", ("worker-0",))}
    records = engine_named("hosts").records  # type: ignore[attr-defined]
    records.place(Placement(key, spec, TaskAccess("http://127.0.0.1", "token"), shares))
    return key


def notebook_of(owner: uuid.UUID) -> TrainingSpec:
    roles = {Role.WORKER: RoleSpec(1, Resources(1, 1 << 30, 0))}
    return TrainingSpec("j", Strategy.SERVICE, roles, None, "", program=JUPYTER, options={"owner": str(owner)})


def hear(name: str, **details: object) -> None:
    """As if a worker had heard this of the machine a moment ago."""
    place = host_listed(source(), name).place
    about = {"place": place, "away_since": None, "clock": 0.1, "known": [], **details}
    one = {
        "name": name, "state": "ready", "message": "", "total": {"cpu": 4}, "free": {"cpu": 4}, "jobs": [],
        "details": about,
    }  # fmt: skip
    EngineNow.objects.update_or_create(engine="hosts", defaults={"machines": [one], "next_at": timezone.now()})


def test_an_empty_list_says_what_to_do_and_a_machine_is_added(desk, django_assert_max_num_queries):
    assert "No machines yet" in text_of(desk.get(PAGE))
    assert "ssh-ed25519" in text_of(desk.get(PAGE)), "the line for authorized_keys"
    form = {**GPU_1, "port": "2222", "memory": "64Gi", "gpus": "2", "ports": "20000-29999"}
    assert desk.post(f"{PAGE}new/", form).status_code == 302
    entry = {**GPU_1, "port": 2222, "memory": "64Gi", "gpus": 2, "ports": [20000, 29999]}
    assert HostMachine.objects.get().entry == entry
    assert hosts_listed() == {
        "gpu-1": Host("gpu-1", "10.0.0.11", "train", 2222, memory=64 << 30, gpus=("0", "1"), ports=(20000, 29999))
    }
    told = AuditEvent.objects.get(action="machine.create")
    assert (told.subject, told.facts["entry"]) == ("machine:gpu-1", entry)
    with django_assert_max_num_queries(12):
        page = text_of(desk.get(PAGE))
    assert "train@10.0.0.11:2222" in page
    assert "Not checked yet" in page
    with django_assert_max_num_queries(12):
        page = desk.get(f"{PAGE}gpu-1/").content.decode()
    assert 'value="20000-29999"' in page


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "GPU 1", "Name is &#x27;GPU 1&#x27;"),
        ("name", "new", "an address of the portal"),
        ("address", "gpu-1.example", "must be an IP address"),
        ("port", "70000", "Port is 70000, and must be between 1 and 65535. Enter the port of its SSH server"),
        ("port", "ssh", "Port is &#x27;ssh&#x27;"),
        ("user", "-x", "User is &#x27;-x&#x27;"),
        ("memory", "much", "Memory is &#x27;much&#x27;: Expected bytes"),
        ("cores", "0", "so that no task could run there"),
        ("gpus", "-1", "Gpus is &#x27;-1&#x27;, and must be a number or a list"),
        ("ports", "9-2", "its first is larger"),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_changes_nothing(desk, field, value, said):
    answer = desk.post(f"{PAGE}new/", {**GPU_1, field: value})
    assert said in answer.content.decode()
    assert answer.status_code == 400
    assert not HostMachine.objects.exists()


def test_two_machines_of_one_name_or_address_are_refused(office):
    assert office.post(API, {"entry": GPU_1}, format="json").status_code == 201
    again = office.post(API, {"entry": {**GPU_1, "name": "gpu-2"}}, format="json")
    assert (again.status_code, again.json()["errors"][0]["field"]) == (400, "address")
    again = office.post(API, {"entry": {**GPU_1, "address": "10.0.0.12"}}, format="json")
    assert (again.status_code, again.json()["errors"][0]["field"]) == (400, "name")
    wrong = office.post(API, {"entry": {**GPU_1, "name": "b", "host_key": "x", "speed": 3}}, format="json").json()
    assert {one["field"] for one in wrong["errors"]} == {"host_key", "speed"}
    assert HostMachine.objects.count() == 1


def test_of_two_administrators_who_edit_at_once_the_second_is_told(desk, office):
    office.post(API, {"entry": GPU_1}, format="json")
    assert office.get(f"{API}gpu-1/").json()["version"] == 1
    first = office.put(f"{API}gpu-1/", {"entry": {**GPU_1, "cores": 8}, "version": 1}, format="json")
    assert (first.status_code, first.json()["version"]) == (200, 2)
    late = desk.post(f"{PAGE}gpu-1/", {**GPU_1, "cores": "4", "version": "1"})
    assert "was changed by another administrator" in text_of(late, 400)
    assert HostMachine.objects.get().entry["cores"] == 8
    assert desk.post(f"{PAGE}gpu-1/", {**GPU_1, "cores": "4", "version": "2"}).status_code == 302
    assert HostMachine.objects.get().entry["cores"] == "4"
    assert AuditEvent.objects.filter(action="machine.change").count() == 2
    renamed = office.put(f"{API}gpu-1/", {"entry": {**GPU_1, "name": "b"}}, format="json")
    assert renamed.json()["errors"][0]["field"] == "name"


def test_a_machine_with_tasks_is_drained_before_it_is_moved_or_removed(desk, office):
    office.post(API, {"entry": GPU_1}, format="json")
    key = place_a_task("gpu-1")
    engine = engine_named("hosts")
    engine.records.note_machine("gpu-1", total={"cpu": 4})
    refused = office.delete(f"{API}gpu-1/")
    assert (refused.status_code, refused.json()["code"]) == (409, "machine_in_use")
    moved = office.put(f"{API}gpu-1/", {"entry": {**GPU_1, "address": "10.0.0.99"}}, format="json")
    assert (moved.status_code, moved.json()["errors"][0]["field"]) == (400, "address")
    assert desk.post(f"{PAGE}gpu-1/drain/", {"action": "drain"}).status_code == 302
    assert hosts_listed()["gpu-1"].is_cordoned
    assert "Tasks still running: 1" in text_of(desk.get(f"{PAGE}gpu-1/"))
    assert office.delete(f"{API}gpu-1/").status_code == 409
    engine.records.forget(key)
    undrained = office.post(f"{API}gpu-1/drain/", {"draining": False}, format="json").json()
    assert undrained["is_draining"] is False
    assert "Drain it first" in office.delete(f"{API}gpu-1/").json()["detail"]
    office.post(f"{API}gpu-1/drain/", {"draining": True}, format="json")
    assert desk.post(f"{PAGE}gpu-1/remove/").status_code == 302
    assert not HostMachine.objects.exists()
    actions = AuditEvent.objects.filter(subject="machine:gpu-1").order_by("at", "pk").values_list("action", flat=True)
    assert list(actions) == [
        "machine.create", "machine.drain", "machine.undrain", "machine.drain", "machine.remove",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "workbench", "said", "unsaid"),
    [
        ("current", "none", ["Task environment installed, current", "JupyterLab not installed"], "another release"),
        ("current", "current", ["JupyterLab installed, current"], "--workbench"),
        ("outdated", "outdated", ["machines --install gpu-1", "machines --install gpu-1 --workbench"], "current"),
        ("own", None, ["Task environment a Python of yours", "JupyterLab not known"], "another release"),
        (True, None, ["Task environment not known"], "current"),
    ],
)
def test_what_is_installed_is_said_of_each_machine(desk, office, environment, workbench, said, unsaid):
    office.post(API, {"entry": GPU_1}, format="json")
    spark = None if environment is True else environment == "current"
    hear("gpu-1", environment=environment, workbench=workbench, spark=spark)
    page = text_of(desk.get(f"{PAGE}gpu-1/"))
    assert [one for one in said if one not in page] == []
    assert unsaid not in page
    found = office.get(f"{API}gpu-1/").json()
    known = environment if isinstance(environment, str) else None  # True: a worker of an earlier release wrote it
    assert (found["environment"], found["workbench"], found["has_spark"]) == (known, workbench, spark)
    assert {None: "Spark not known", True: "Spark installed", False: "Spark not installed"}[spark] in page
    assert found["has_environment"] is (None if known is None else True)
    every = text_of(desk.get(PAGE))
    assert ("JupyterLab is installed" in every) is (workbench in ("current", "outdated"))
    assert ("from another release" in every) is (environment == "outdated")


def test_a_machine_with_files_of_jupyters_is_removed_only_by_one_who_was_told_whose(
    desk, office, ada, django_assert_max_num_queries
):
    office.post(API, {"entry": GPU_1}, format="json")
    homes = engine_named("hosts").homes
    mine = Namespace.objects.get(owner=ada)
    gone = (new_id(), new_id())
    for namespace_id, owner_id in ((mine.pk, ada.pk), gone):
        key = JobKey(namespace_id, new_id(), 1)
        homes.take(notebook_of(owner_id), key, ["gpu-1"])
    refused = office.delete(f"{API}gpu-1/")
    assert (refused.status_code, refused.json()["code"]) == (409, "machine_has_files")
    assert f"ada in {mine.slug}" in refused.json()["detail"]
    assert "--forget gpu-1" in refused.json()["remedy"]
    assert refused.json()["files"] == [
        {"owner": "(removed)", "namespace": "(removed)"}, {"owner": "ada", "namespace": mine.slug},
    ]  # fmt: skip
    assert office.get(f"{API}gpu-1/").json()["files"] == refused.json()["files"]
    with django_assert_max_num_queries(14):
        page = text_of(desk.get(f"{PAGE}gpu-1/"))
    assert f"ada in {mine.slug}" in page
    assert "although it has the files of 2 users" in page
    assert "ada in" in text_of(desk.post(f"{PAGE}gpu-1/remove/", follow=True))
    assert HostMachine.objects.exists()
    assert desk.post(f"{PAGE}gpu-1/remove/", {"force": "on"}).status_code == 302
    assert not HostMachine.objects.exists()
    assert AuditEvent.objects.get(action="machine.remove").facts["files"] == [
        "(removed) in (removed)",
        f"ada in {mine.slug}",
    ]
    office.post(API, {"entry": GPU_1}, format="json")
    assert len(office.get(f"{API}gpu-1/").json()["files"]) == 2, "listed again, the files are there"
    assert homes.forget_machine("gpu-1") == 2
    assert office.delete(f"{API}gpu-1/").status_code == 204


def test_a_host_key_is_shown_compared_and_accepted_and_another_one_later_again(desk, office):
    key, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    with ssh_server(key) as port:
        entry = {"name": "here", "address": "127.0.0.1", "user": "train", "port": port}
        office.post(API, {"entry": entry}, format="json")
        engines_look()
        assert office.get(f"{API}here/").json()["state"] == "no_key"
        page = desk.get(PAGE).content.decode()
        assert key.get_fingerprint() in page
        assert "Accept host key" in page
        wrong = office.post(f"{API}here/host-key/", {"shown": other.get_fingerprint()}, format="json")
        assert (wrong.status_code, wrong.json()["code"]) == (409, "key_changed_meanwhile")
        assert desk.post(f"{PAGE}here/accept-key/", {"shown": key.get_fingerprint()}).status_code == 302
        assert office.get(f"{API}here/").json()["known_keys"] == [key.get_fingerprint()]
        assert AuditEvent.objects.get(action="machine.accept_key").facts["keys"] == [key.get_fingerprint()]
        engine_named("hosts").close()
        engines_look()
        found = office.get(f"{API}here/").json()
        assert "refuses the portal's login as train" in found["message"]
    with ssh_server(other) as port:
        # The same place shows another key: as if it had been installed again.
        known = engine_named("hosts").keys
        known.accept_line(Host("here", "127.0.0.1", "train", port), key.export_public_key().decode())
        office.put(f"{API}here/", {"entry": {**entry, "port": port}}, format="json")
        engine_named("hosts").close()
        engines_look()
        page = text_of(desk.get(f"{PAGE}here/"))
        assert "shows a different host key than before" in page
        assert f"Known until now: {key.get_fingerprint()}" in page
        assert desk.post(f"{PAGE}here/accept-key/", {"shown": other.get_fingerprint()}).status_code == 302
        assert office.get(f"{API}here/").json()["known_keys"] == [other.get_fingerprint()]


def test_a_list_in_a_file_is_read_only_and_named(desk, office, settings, tmp_path):
    file = tmp_path / "machines.toml"
    file.write_text('[[machine]]\nname = "gpu-1"\naddress = "10.0.0.11"\nuser = "train"\n')
    engines = settings.YARDMASTER_ENGINES
    engines["hosts"]["options"]["machines"] = file
    settings.YARDMASTER_ENGINES = {**engines}
    page = text_of(desk.get(PAGE))
    assert str(file) in page
    assert "Add machine" not in page
    assert "Edit that file to change it" in text_of(desk.get(f"{PAGE}gpu-1/"))
    refused = office.post(API, {"entry": GPU_1}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "machines_in_file")
    for address, said in ((f"{PAGE}gpu-1/", {**GPU_1}), (f"{PAGE}gpu-1/drain/", {}), (f"{PAGE}gpu-1/remove/", {})):
        assert desk.post(address, said).status_code == 302
    assert not HostMachine.objects.exists()
    assert "There are no" not in page
    file.write_text("[[machine]]\n")
    assert "name is missing" in text_of(desk.get(PAGE))


def test_without_the_engine_the_page_says_how_to_have_one_and_users_see_none(world, admin, ada, client, signed_in):
    assert source().engine == ""
    client.force_login(admin)
    assert "YARDMASTER_HOSTS=database" in text_of(client.get(PAGE))
    assert client.get(f"{PAGE}gpu-1/").status_code == 404
    assert signed_in(admin).get(API).json()["results"] == []
    assert signed_in(admin).post(API, {"entry": GPU_1}, format="json").json()["code"] == "no_machines"
    client.force_login(ada)
    for path in (PAGE, f"{PAGE}new/", f"{PAGE}gpu-1/"):
        assert client.get(path).status_code == 403
    assert signed_in(ada).get(API).status_code == 403


def test_a_change_makes_a_worker_look_at_once(office):
    engines_look()
    later = EngineNow.objects.get().next_at
    office.post(API, {"entry": GPU_1}, format="json")
    assert EngineNow.objects.get().next_at < later
