"""What the commands that launch and check a job ask of the portal: a file's job with names made ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.text import Text

from yardmaster_client.cli.output import notes, progress_bar
from yardmaster_client.jobfile import JobFile
from yardmaster_client.names import resolve_spec
from yardmaster_client.portal import Yardmaster


def request_of(
    portal: Yardmaster,
    job: JobFile,
    code: Path | None,
    namespace: str | None,
    engine: str | None,
) -> JobFile:
    """The file's job with names made ids, and `code` uploaded where it is given."""
    namespace, engine = namespace or job.namespace, engine or job.engine
    spec = dict(job.spec)
    if code is not None:
        spec["code"] = _put_code(portal, spec, code, namespace)
    return JobFile(resolve_spec(portal, spec, namespace), namespace, engine, job.accept_never_fits)


def _put_code(portal: Yardmaster, spec: dict[str, Any], folder: Path, namespace: str | None) -> str:
    """The id of the version that holds the folder: the newest where nothing changed, else a new one. It is called as
    the file calls its code, else as the job."""
    wanted = spec.get("code")
    name = wanted.partition("@")[0] if isinstance(wanted, str) and wanted else str(spec.get("name") or folder.name)
    with progress_bar(f"Uploading {folder}") as progress:
        item = portal.code.put(name, [folder], namespace=namespace, unless_same=True, progress=progress)
    assert item.latest is not None
    notes().print(Text(f"Code {item.name}@{item.latest.number}."), style="dim")
    return item.latest.id
