"""The wheel that a portal serves, installed by pip as a newcomer does it: into an environment without the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.client.wheel import wheel
from tests.real.portal import RealPortal
from yardmaster_client import Yardmaster
from yardmaster_client.version import VERSION

pytestmark = pytest.mark.slow

Command = Callable[..., str]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that sees what is installed here, and so needs no index: pip finds each requirement there,
    and refuses one that is outside the wheel's range."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "beneath.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


@pytest.fixture(scope="module")
def installed(environment: Path, light_portal: RealPortal) -> Path:
    address = f"{light_portal.url}/client/{wheel().name}"
    command = [
        environment / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--no-index",
        "--disable-pip-version-check",
        address,
    ]
    done = subprocess.run(command, env=_without_the_checkout(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return environment


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Command:
    def run(*words: object, code: int = 0, given: str = "") -> str:
        done = subprocess.run(
            [installed / "bin" / "yardmaster", *map(str, words)], env=_without_the_checkout(tmp_path), cwd=tmp_path,
            capture_output=True, text=True, check=False, input=given,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


def _without_the_checkout(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


@pytest.mark.long
def test_it_says_its_version_and_is_not_the_checkouts(command: Command, installed: Path):
    assert command("--version") == f"yardmaster {VERSION}\n"
    code = "import yardmaster_client; print(yardmaster_client.__file__)"
    done = subprocess.run([installed / "bin" / "python", "-c", code], env=_without_the_checkout(installed),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_it_signs_in_uploads_and_launches(
    command: Command, ada: Yardmaster, tmp_path: Path, script: Path, job_file: Path
):
    command("login", "--url", ada.transport.url, "--token", ada.transport.token)
    assert json.loads(command("whoami", "--json"))["username"] == "ada"
    job = command(
        "jobs", "launch", job_file, "--code", script, "--set", "name=from-the-wheel", "--queue-anyway"
    ).strip()
    assert ada.jobs.get(job).name == "from-the-wheel"
    folder = tmp_path / "fetched"
    command("code", "open", "training", folder)
    assert (folder / "train.py").read_text() == (script / "train.py").read_text()


def test_pip_finds_it_by_the_page_and_checks_its_checksum(environment: Path, light_portal: RealPortal, tmp_path: Path):
    words = ["download", "--no-index", "--no-deps", "--no-cache-dir", "--find-links", f"{light_portal.url}/client/"]
    command = [environment / "bin" / "python", "-m", "pip", *words, "-d", tmp_path, f"yardmaster-client=={VERSION}"]
    done = subprocess.run(command, env=_without_the_checkout(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / wheel().name).read_bytes() == wheel().content


@pytest.mark.skipif(sys.platform == "win32", reason="folders of environments are named otherwise there")
def test_uv_installs_it_too(light_portal: RealPortal, tmp_path: Path):
    uv = Path(sys.executable).parent / "uv"
    words = ["pip", "install", "--no-deps", "--no-index", "--target", tmp_path / "out", "--no-cache"]
    done = subprocess.run([uv, *words, f"{light_portal.url}/client/{wheel().name}#sha256={wheel().sha256}"],
                          env=_without_the_checkout(tmp_path), capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "yardmaster_client" / "from_runner" / "receiving.py").exists()
