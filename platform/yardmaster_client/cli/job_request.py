"""What the commands that launch, check and export a job ask of the portal: a file's job with names made ids."""

from __future__ import annotations

from typing import Any

from yardmaster_client.cli.job_code import with_code
from yardmaster_client.jobfile import JobFile, with_preset
from yardmaster_client.names import NotFound, resolve_spec
from yardmaster_client.portal import Yardmaster


def request_of(
    portal: Yardmaster,
    job: JobFile,
    code: str | None,
    git_token: str | None,
    namespace: str | None,
    engine: str | None,
    preset: str | None = None,
) -> JobFile:
    """The file's job with names made ids, and its code uploaded or fetched where that is asked for. `preset`: the name
    of one that says what the file does not."""
    if preset is not None:
        job = with_preset(job, preset_named(portal, preset))
    namespace, engine = namespace or job.namespace, engine or job.engine
    spec = with_code(portal, dict(job.spec), code, git_token, namespace)
    return JobFile(resolve_spec(portal, spec, namespace), namespace, engine, job.accept_never_fits)


def preset_named(portal: Yardmaster, name: str) -> dict[str, Any]:
    """The preset of this name, in any capitals. Raises `NotFound`."""
    found = portal.launch_presets()
    one = next((one for one in found if one["name"].casefold() == name.strip().casefold()), None)
    if one is None:
        names = ", ".join(one["name"] for one in found)
        raise NotFound(f"There is no preset {name}." + (f" There are: {names}." if names else " There is none yet."))
    return one
