"""MinIO beside the portal: its keys are made once, its port is a free one, and the program is found or asked for."""

from __future__ import annotations

import socket
import stat

import pytest

from portal import minio
from portal.minio import MinioMissing, free_port, minio_of, program


def test_its_keys_are_made_once_and_for_the_owner_alone(tmp_path):
    first = minio_of(tmp_path / "home")
    assert len(first.access_key) == 20
    assert len(first.secret_key) == 40
    assert stat.S_IMODE((tmp_path / "home" / "minio.keys").stat().st_mode) == 0o600
    again = minio_of(tmp_path / "home", 9123, "127.0.0.2")
    assert (again.access_key, again.secret_key) == (first.access_key, first.secret_key)
    assert again.settings()["YARDMASTER_S3_ENDPOINT"] == "http://127.0.0.2:9123"


def test_a_port_that_is_taken_is_left_to_whom_it_belongs():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", minio.PORT))
        except OSError:
            pass  # somebody has it anyway
        else:
            other.listen()
        assert free_port("127.0.0.1") != minio.PORT


def test_the_program_is_the_operators_and_a_missing_one_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("YARDMASTER_MINIO", "/opt/minio")
    assert program() == "/opt/minio"
    monkeypatch.delenv("YARDMASTER_MINIO")
    (tmp_path / "deploy" / "objectstores").mkdir(parents=True)
    build = tmp_path / "deploy" / "objectstores" / "build"
    build.write_text("#!/bin/sh\nexit 1\n")
    build.chmod(0o755)
    monkeypatch.setattr(minio, "ROOT", tmp_path)
    monkeypatch.setattr(minio.shutil, "which", lambda name: None)
    with pytest.raises(MinioMissing, match="YARDMASTER_MINIO"):
        program()
