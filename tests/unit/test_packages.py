"""How a lock is installed: what uv is told of pip's settings, and when pip does it itself."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy" / "setup" / "packages.py"
_spec = importlib.util.spec_from_file_location("packages", SCRIPT)
assert _spec
assert _spec.loader
packages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packages)


def test_the_environment_wins_over_files_and_other_sections_do_not_count():
    listed = (
        ":env:.cert='/env.pem'\nglobal.cert='/file.pem'\ninstall.timeout='5'\ndownload.find-links='/no'\nnonsense\n"
    )
    assert packages.pip_settings(listed) == {"cert": "/env.pem", "timeout": "5"}


def test_an_index_more_folders_and_certificates_are_told_to_uv():
    settings = {"index-url": "https://a/simple", "extra-index-url": "https://b/simple\nhttps://c/simple",
                "find-links": "/wheels", "cert": "/ca.pem", "proxy": "http://p:1", "no-index": "false"}  # fmt: skip
    flags, environment = packages.uv_arguments(settings)
    assert flags == [
        "--default-index", "https://a/simple", "--index", "https://b/simple", "--index", "https://c/simple",
        "--find-links", "/wheels", "--index-strategy", "unsafe-best-match",
    ]  # fmt: skip
    assert environment == {"UV_SYSTEM_CERTS": "1", "SSL_CERT_FILE": "/ca.pem", "ALL_PROXY": "http://p:1"}
    assert packages.uv_arguments({"no-index": "1"})[0] == ["--no-index"]


def test_what_uv_has_no_word_for_is_left_to_pip():
    assert packages.uv_arguments({"client-cert": "/me.pem"}) is None


def test_the_locked_uv_is_found_with_all_its_hashes():
    lock = (ROOT / "requirements.txt").read_text()
    found = packages.pinned("uv", lock)
    assert found.startswith("uv==")
    assert found.count("--hash=sha256:") > 5
    assert "\n\n" not in found
    assert found.count("==") == 1
    with pytest.raises(LookupError):
        packages.pinned("no-such-package", lock)


@pytest.mark.slow
class TestRealEnvironment:
    """Offline: the wheels are made here, that of uv leads to the uv of this environment."""

    def test_uv_installs_what_has_the_right_hash(self, venv: Path, tmp_path: Path):
        found = _installed(venv, tmp_path, "right", uv="right")
        assert (found.returncode, found.stderr) == (0, "")
        assert _has_tiny(venv)
        assert not list(venv.glob(".installing-*"))

    def test_a_wrong_hash_is_refused_by_both(self, venv: Path, tmp_path: Path):
        found = _installed(venv, tmp_path, "wrong", uv="right")
        assert found.returncode != 0
        assert "uv could not install it: pip tries now." in found.stderr
        assert not _has_tiny(venv)

    @pytest.mark.parametrize("uv", ["wrong", ""], ids=["another uv", "no uv"])
    def test_pip_installs_without_a_uv_to_be_trusted(self, venv: Path, tmp_path: Path, uv: str):
        found = _installed(venv, tmp_path, "right", uv=uv)
        assert (found.returncode, found.stderr) == (0, "uv cannot be had here: pip installs, which takes longer.\n")
        assert _has_tiny(venv)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "venv"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    return place


@pytest.fixture
def venv(made: Path) -> Path:
    """With pip alone."""
    for left in made.glob("lib/*/site-packages/tiny*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return made


def _installed(venv: Path, folder: Path, tiny: str, uv: str) -> subprocess.CompletedProcess[str]:
    """The script over a lock of one package. `tiny`, `uv`: whether the hash of its wheel is the right or a wrong one;
    empty: there is no such wheel."""
    wheels = folder / "wheels"
    wheels.mkdir()
    launcher = f'#!/bin/sh\nexec "{Path(sys.executable).with_name("uv")}" "$@"\n'
    hashes = {"tiny": _wheel(wheels, "tiny", {"tiny.py": ""})}
    hashes["uv"] = _wheel(wheels, "uv", {"uv-1.0.data/scripts/uv": launcher}) if uv else ""
    for name, kind in (("tiny", tiny), ("uv", uv)):
        digest = hashes[name] if kind == "right" else "0" * 64
        (folder / f"{name}.txt").write_text(f"{name}==1.0 \\\n    --hash=sha256:{digest}\n")
    told = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    told |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}
    command = [venv / "bin/python", SCRIPT, folder / "tiny.txt", folder / "uv.txt"]
    return subprocess.run(command, env=told, capture_output=True, text=True, check=False)


def _has_tiny(venv: Path) -> bool:
    command = [venv / "bin/python", "-c", "import tiny"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """Make it; its SHA-256."""
    about = f"{name}-1.0.dist-info"
    files = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},," for path in (*files, f"{about}/RECORD")]
    place = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as wheel:
        for path, text in {**files, f"{about}/RECORD": "\n".join(rows) + "\n"}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16
            wheel.writestr(entry, text)
    return hashlib.sha256(place.read_bytes()).hexdigest()
