"""The folders of the gallery for tests that launch them: each by its job file, with the code that lies beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real.package_index import wheel
from yardmaster_client import Job, Yardmaster
from yardmaster_client.jobfile import read_job_file

GALLERY = Path(__file__).parents[3] / "examples" / "gallery"


def spec_of(folder: str) -> dict[str, Any]:
    """What the job file of the folder says."""
    return dict(read_job_file(GALLERY / folder / "job.yaml").spec)


def launched(client: Yardmaster, folder: str, changes: Mapping[str, Any] | None = None) -> Job:
    """The job of the folder's file, with these changes (None: without the field). The check finds nothing."""
    spec = spec_of(folder)
    latest = client.code.put(spec["code"], [GALLERY / folder]).latest
    assert latest is not None
    spec |= {"code": latest.id, "reclaim_delay": 1, **(changes or {})}
    job = client.jobs.launch({name: value for name, value in spec.items() if value is not None})
    assert not job.warnings
    return job


def yaml_wheel() -> tuple[str, bytes]:
    """The PyYAML of this Python as a wheel, without the part that is compiled: what a package index has of it."""
    import yaml

    folder = Path(yaml.__file__).parent
    return wheel("PyYAML", yaml.__version__, {f"yaml/{one.name}": one.read_text() for one in folder.glob("*.py")})
