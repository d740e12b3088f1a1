"""What the commands that launch, check and export a job ask of the portal: a file's job with names made ids."""

from __future__ import annotations

from yardmaster_client.cli.job_code import with_code
from yardmaster_client.jobfile import JobFile
from yardmaster_client.names import resolve_spec
from yardmaster_client.portal import Yardmaster


def request_of(
    portal: Yardmaster,
    job: JobFile,
    code: str | None,
    git_token: str | None,
    namespace: str | None,
    engine: str | None,
) -> JobFile:
    """The file's job with names made ids, and its code uploaded or fetched where that is asked for."""
    namespace, engine = namespace or job.namespace, engine or job.engine
    spec = with_code(portal, dict(job.spec), code, git_token, namespace)
    return JobFile(resolve_spec(portal, spec, namespace), namespace, engine, job.accept_never_fits)
