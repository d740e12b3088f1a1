"""Jobs that come from a TFJob of Kubeflow, and jobs as manifests for a cluster without the portal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli import logs
from yardmaster_client.cli.attempts import ConfirmForeign, QueueAnyway, queued
from yardmaster_client.cli.job_code import GitToken
from yardmaster_client.cli.job_request import request_of
from yardmaster_client.cli.job_views import verdict_of
from yardmaster_client.cli.output import Json, Namespace, notes, print_json, visible
from yardmaster_client.git import is_git
from yardmaster_client.jobfile import JobFile, job_from_text, read_job_file
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster

_COLOURS = {"to_do": "yellow", "changed": "cyan", "left_out": "magenta", "taken": "dim"}
_WORDS = {"to_do": "to do", "left_out": "left out"}
_FILES = (".yaml", ".yml", ".json")
_MOST = 256 << 10


def import_tfjob(
    file: Annotated[Path, typer.Argument(help="The YAML file with the TFJob; /dev/stdin reads it from a pipe.")],
    code: Annotated[
        str | None,
        typer.Option(
            "--code",
            metavar="FOLDER|git+https://…",
            help="The folder with the script, which --launch uploads first; or an address of Git.",
        ),
    ] = None,
    git_token: GitToken = None,
    launch: Annotated[bool, typer.Option("--launch", help="Launch the job.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the job file here.")] = None,
    namespace: Namespace = None,
    engine: Annotated[str | None, typer.Option(help="The engine to use, with --launch.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="With --launch: show its log until it ends.")] = False,
    queue_anyway: QueueAnyway = False,
    confirm_foreign_model: ConfirmForeign = False,
    as_json: Json = False,
) -> None:
    """Turn a TFJob (kubeflow.org/v1) into a job file. Prints the file, and on stderr what is not the same."""
    text = _read(file)
    folder = None if code is None or is_git(code) else Path(code)
    if folder is not None and not folder.is_dir():
        raise typer.BadParameter(f"{code} is no folder.", param_hint="--code")
    with Yardmaster.from_environment() as portal:
        found = portal.jobs.import_tfjob(text, namespace=namespace)
        job_file, moved = _with_script(found, folder)
        for note in found["notes"]:
            if code is None or not note["upload"].startswith("code:"):  # what --code uploads is not left to do
                _print_note(note)
        if moved:
            notes().print(Text(f"The script is {moved} in {code}.", style="dim"))
        if output is not None:
            output.write_text(job_file, encoding="utf-8")
            notes().print(Text(f"The job file is {output}."))
        if launch:
            said = job_from_text(job_file, Path("job.yaml"))
            wanted = request_of(portal, said, code, git_token, namespace, engine)
            _launch(portal, wanted, (queue_anyway, confirm_foreign_model), follow, as_json)
        elif as_json:
            print_json({**found, "job_file": job_file})
        elif output is None:
            print(visible(job_file), end="")  # noqa: T201 (the result, for scripts)


def export(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="A job's name, its id, or how the id begins; or a job file.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the manifests here.")] = None,
    code: Annotated[
        str | None, typer.Option("--code", metavar="FOLDER|git+https://…", help="Of a job file: where its code is.")
    ] = None,
    git_token: GitToken = None,
    namespace: Namespace = None,
    image: Annotated[
        str | None, typer.Option(help="The image of the tasks. Default: the job's own, else that of its engine.")
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="A PersistentVolumeClaim of the cluster, for data, logs and models.")
    ] = None,
) -> None:
    """Write a job as Kubernetes manifests: kubectl apply runs it on any cluster, without the portal."""
    with Yardmaster.from_environment() as portal:
        if (file := Path(job)).suffix in _FILES and file.is_file():
            wanted = request_of(portal, read_job_file(file), code, git_token, namespace, None)
            where = {"namespace": wanted.namespace, "engine": wanted.engine}
            text = portal.jobs.export_spec(wanted.spec, **where, image=image, claim=claim)
        else:
            text = portal.jobs.export(find_job(portal, job).id, image=image, claim=claim)
    if output is None:
        print(visible(text), end="")  # noqa: T201 (the result, for scripts)
    else:
        output.write_text(text, encoding="utf-8")
        notes().print(Text(f"The manifests are in {output}. Read its first lines, then: kubectl apply -f {output}"))


def _read(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST + 1)
        if len(data) > _MOST:
            raise typer.BadParameter(f"{file} is larger than {_MOST >> 10} KiB: import the TFJob alone.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not a text in UTF-8.") from error


def _with_script(found: dict[str, Any], code: Path | None) -> tuple[str, str]:
    """The job file with the script's path in the folder, where it has another there; and that path."""
    entry, text = found["spec"].get("entry_point", ""), str(found["job_file"])
    if code is None or not entry.endswith((".py", ".ipynb")) or (code / entry).is_file():
        return text, ""
    same = sorted(code.rglob(entry.rpartition("/")[2]))
    if len(same) != 1:
        return text, ""
    path = same[0].relative_to(code).as_posix()
    lines = [f"entry_point: {path}" if line.startswith("entry_point: ") else line for line in text.splitlines()]
    return "\n".join(lines) + "\n", path


def _print_note(note: dict[str, Any]) -> None:
    words = f"{_WORDS.get(note['kind'], note['kind'])}: {note['message']} {note['remedy']}".strip()
    notes().print(Text(words, style=_COLOURS.get(note["kind"], "")))


def _launch(portal: Yardmaster, wanted: JobFile, accepted: tuple[bool, bool], follow: bool, as_json: bool) -> None:
    job = queued(
        lambda accept: portal.jobs.launch(
            wanted.spec, namespace=wanted.namespace, engine=wanted.engine,
            accept_never_fits=accept, confirm_foreign_model=accepted[1],
        ),
        accepted[0],
    )  # fmt: skip
    if follow:
        logs.print_following(portal, job, logs.Part(), as_json=as_json)
        job = portal.jobs.wait(job.id)
    if as_json:
        print_json(job)
    elif follow:
        notes().print(verdict_of(job))
    else:
        notes().print(Text(f"Launched {job.name} ({job.id})."))
        print(job.id)  # noqa: T201 (the result, for scripts)
    if follow and job.phase != "SUCCEEDED":
        raise typer.Exit(1)
