"""Installing what tasks import on a machine, and the command with which administrators do it."""

from __future__ import annotations

import io
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.real.machines import Machines, machines
from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.installing import Installer
from yardmaster.engines.hosts.inventory import Inventory
from yardmaster.engines.hosts.keys import Keys
from yardmaster.engines.hosts.surveying import asked_of
from yardmaster.errors import Unavailable

pytestmark = [pytest.mark.ssh, pytest.mark.slow]
INFO = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    """A wheel of version 1.0 with these files."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, data in files.items():
            archive.writestr(place, data)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", INFO.format(name=name))
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Machines]:
    with machines(tmp_path, 1) as made:
        yield made


@pytest.fixture
def links(one: Machines) -> Iterator[Links]:
    made = Links(Keys(one.portal))
    yield made
    made.close()


def installer(one: Machines, links: Links, said: list[str], text: str) -> Installer:
    """Each of its locks is of one package; the wheels were fetched already."""
    locks = [one.portal / "lock.txt", one.portal / "workbench.txt", one.portal / "spark.txt"]
    for lock, name in zip(locks, ("greeting", "notebook", "sparks"), strict=True):
        lock.write_text(f"{name}==1.0\n")
    made = Installer(one.portal, links, said.append, locks[0], locks[1], (locks[2],))
    hello = links.hello(Inventory(one.file).hosts()["m1"])
    fetched(one.portal / "wheels" / made._tasks.digest(hello), "greeting", f"TEXT = {text!r}")
    fetched(one.portal / "wheels" / made._workbench(hello).digest(hello), "notebook", "from greeting import TEXT")
    fetched(one.portal / "wheels" / made._spark(hello).digest(hello), "sparks", "FLY = True")
    return made


def fetched(folder: Path, name: str, code: str) -> None:
    """The wheels of a lock: this package, and uv."""
    if not folder.exists():
        folder.mkdir(parents=True)
        wheel(folder, name, {f"{name}.py": code.encode()})
        program = Path(sys.executable).with_name("uv").read_bytes()
        wheel(folder, "uv", {"uv-1.0.data/scripts/uv": program})
        (folder / ".complete").touch()


def test_jupyterlab_is_installed_on_top_of_the_task_environment_when_asked(one: Machines, links: Links):
    said: list[str] = []
    host = Inventory(one.file).hosts()["m1"]
    installer(one, links, said, "hello").install(host)
    assert links.call(host, "environment", link="workbench")["current"] == ""
    tasks = links.call(host, "environment")["current"]
    said.clear()
    installer(one, links, said, "hello").install(host, workbench=True)
    assert said[0] == "m1: the task environment is there."
    assert said[1].startswith("m1: sending 2 wheels")
    assert said[2:] == ["m1: installing ...", "m1: JupyterLab is there."]
    environments = one.home(1) / ".yardmaster" / "environments"
    python = environments / "workbench" / "python" / "bin" / "python"
    code = "import notebook; print(notebook.TEXT)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "hello\n", done.stderr
    assert links.call(host, "environment")["current"] == tasks, "tasks import what they did"
    assert links.call(host, "environment", link="workbench")["current"] not in ("", tasks)
    said.clear()
    installer(one, links, said, "hello").install(host, workbench=True)
    assert said == ["m1: the task environment is there.", "m1: JupyterLab is there."]


def test_spark_is_installed_beside_the_task_environment_when_asked(one: Machines, links: Links):
    said: list[str] = []
    host = Inventory(one.file).hosts()["m1"]
    installer(one, links, said, "hello").install(host)
    assert links.call(host, "environment", link="spark")["current"] == ""
    installer(one, links, said, "hello").install(host, spark=True)
    assert said[-1] == "m1: Spark is there."
    digest = links.call(host, "environment", link="spark")["current"]
    assert list((one.home(1) / ".yardmaster" / "environments" / digest).rglob("sparks.py"))
    has = links.call(host, "capacity", **asked_of(host))
    assert bool(has["spark"]) == has["java"], "where there is no Java, it does not run"


def test_an_environment_is_installed_once_and_used_by_tasks(one: Machines, links: Links):
    said: list[str] = []
    host = Inventory(one.file).hosts()["m1"]
    installer(one, links, said, "hello").install(host)
    assert said[-1] == "m1: the task environment is there."
    assert any(line.startswith("m1: sending 2 wheels") for line in said)
    current = one.home(1) / ".yardmaster" / "environments" / "current"
    python = current / "python" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", "import greeting; print(greeting.TEXT)"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "hello\n", done.stderr
    assert not (current / "wheels").exists()
    said.clear()
    installer(one, links, said, "hello").install(host)
    assert said == ["m1: the task environment is there."]


def test_what_has_arrived_is_not_sent_again(one: Machines, links: Links):
    said: list[str] = []
    host = Inventory(one.file).hosts()["m1"]
    made = installer(one, links, said, "hello")
    (greeting,) = one.portal.glob("wheels/*/greeting-*.whl")
    (source,) = greeting.parent.glob("uv-*.whl")
    arrived = one.home(1) / ".yardmaster" / "environments" / source.parent.name / "wheels"
    arrived.mkdir(parents=True)
    (arrived / source.name).write_bytes(source.read_bytes())
    (arrived / "greeting-1.0-py3-none-any.whl").write_bytes(b"cut of")
    made.install(host)
    assert any(line.startswith("m1: sending 1 wheels") for line in said)
    assert links.call(host, "environment")["current"]


def test_a_wheel_that_is_none_is_told_of_and_no_environment_is_made(one: Machines, links: Links):
    host = Inventory(one.file).hosts()["m1"]
    made = installer(one, links, [], "hello")
    (broken,) = one.portal.glob("wheels/*/greeting-*.whl")
    broken.write_bytes(b"no wheel")
    with pytest.raises(Unavailable, match="m1: pip install failed"):
        made.install(host)
    assert links.call(host, "environment")["current"] == ""


def told(*arguments: str, **options: object) -> str:
    out = io.StringIO()
    call_command("machines", *arguments, stdout=out, stderr=out, **options)
    return out.getvalue()


@pytest.fixture
def offered(one: Machines, settings) -> Machines:
    """The portal has them, and knows no host key."""
    lines = one.file.read_text().splitlines()
    one.file.write_text("\n".join(line for line in lines if not line.startswith("host_key")) + "\n")
    settings.YARDMASTER_ENGINES = {
        "hosts": {
            "class": "yardmaster.engines.hosts.HostsEngine", "options": {"root": one.portal, "machines": one.file},
        }
    }  # fmt: skip
    return one


@pytest.mark.django_db
def test_an_administrator_accepts_a_machine_and_sees_what_it_lacks(offered: Machines):
    assert told("--key").startswith("ssh-ed25519 ")
    assert "The machine m1 is not known yet." in told()
    said = told("--accept", "--yes")
    assert "m1 (10.77." in said
    assert "SHA256:" in said
    assert "Accepted." in said
    assert "It is known by this key." in told("--accept", "m1")
    said = told()
    assert "not_ready" in said
    assert "What tasks import is not installed there yet." in said
    with pytest.raises(CommandError, match=r"There is no machine .m9.\. The list has: m1"):
        told("--accept", "m9")


@pytest.mark.django_db
def test_without_machines_the_command_says_how_to_have_some(settings):
    settings.YARDMASTER_ENGINES = {}
    with pytest.raises(CommandError, match="Set YARDMASTER_HOSTS"):
        told()


@pytest.mark.django_db
def test_the_command_gives_up_files_of_machines_off_the_list_only(offered: Machines):
    homes = HostsEngine(offered.portal, offered.file).homes
    homes._folder.mkdir(parents=True)
    (homes._folder / f"{uuid.uuid4()}.{uuid.uuid4()}.json").write_text('{"machine": "m9", "made": true}')
    with pytest.raises(CommandError, match="The machine m1 is in the list"):
        told("--forget", "m1")
    assert "the files of 1 Jupyters on m9" in told("--forget", "m9")
    assert "the files of 0 Jupyters on m9" in told("--forget", "m9")
    with pytest.raises(CommandError, match="machines --install --workbench"):
        told("--workbench")
    with pytest.raises(CommandError, match="machines --install --spark"):
        told("--spark")
