"""Models and their versions: what jobs exported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import (
    Json,
    Namespace,
    notes,
    out,
    print_facts,
    print_json,
    print_table,
    progress_bar,
    size,
    visible,
)
from yardmaster_client.downloads import folder_named
from yardmaster_client.models import Model, ModelVersion
from yardmaster_client.names import NotFound, find_item, find_model_version
from yardmaster_client.portal import Yardmaster

Reference = Annotated[str, typer.Argument(help="Name, name@version, name@stage, id, or the job that exported it.")]

app = typer.Typer(help="Models: what jobs exported.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="models")


@app.command("list")
def list_models(namespace: Namespace = None, search: str | None = None, as_json: Json = False) -> None:
    """Models, newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.models.list(namespace=namespace, search=search))
    if as_json:
        print_json(found)
        return
    print_table(["NAME", "LATEST", "STAGE", "SIZE", "UPDATED", "ID"], (_row(one) for one in found))


def _row(model: Model) -> list[Any]:
    latest = model.latest
    facts = ["", "", ""] if latest is None else [f"@{latest.number}", latest.stage, size(latest.size)]
    return [model.name, *facts, model.updated_at, model.id]


@app.command()
def versions(reference: Reference, namespace: Namespace = None, as_json: Json = False) -> None:
    """The versions of a model, newest first, and the history of its stages."""
    with Yardmaster.from_environment() as portal:
        model = find_item(portal.models, reference, namespace)
        found, changes = list(portal.models.versions(model.id)), list(portal.models.stages(model.id))
        deleted = list(portal.models.deleted_versions(model.id))
    if as_json:
        print_json({"model": model, "versions": found, "stages": changes, "deleted": deleted})
        return
    rows = ([f"@{one.number}", one.stage, size(one.size), one.job_name, one.created_at, one.id] for one in found)
    print_table(["VERSION", "STAGE", "SIZE", "JOB", "MADE", "ID"], rows)
    if changes:
        out().print("\nStages")
        steps = ([f"@{one.version}", one.before or "–", one.after or "–", one.by, one.at, one.note] for one in changes)
        print_table(["VERSION", "FROM", "TO", "BY", "AT", "NOTE"], steps)
    if deleted:
        out().print("\nDeleted; `yardmaster models restore ID` brings one back")
        print_table(["VERSION", "SIZE", "ID"], ([f"@{one.number}", size(one.size), one.id] for one in deleted))


@app.command()
def show(reference: Reference, namespace: Namespace = None, as_json: Json = False) -> None:
    """One version: what it was made of, its signatures, its metrics and its files."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        model, files = portal.models.get(version.model), list(portal.models.files(version.id))
    if as_json:
        print_json({"model": model, "version": version, "files": files})
        return
    contents, source = version.contents or {}, version.source
    made_with = f"{contents.get('framework', '')} {contents.get('framework_version', '')}".strip()
    print_facts(
        [
            ("model", f"{model.name}@{version.number}"), ("id", version.id), ("stage", version.stage or "–"),
            ("format", contents.get("format", "not read yet")), ("framework", made_with), ("size", size(version.size)),
            ("job", version.job_name), ("code", _named(source.get("code"))),
            ("data", ", ".join(_named(one) for one in source.get("inputs", []))),
            ("arguments", " ".join(source.get("arguments", []))), ("image", source.get("image", "")),
            ("problem", contents.get("problem", "")),
        ]
    )  # fmt: skip
    for signature in contents.get("signatures", []):
        out().print(f"\nSignature {visible(signature['name'])}")
        print_table(["KIND", "NAME", "TYPE", "SHAPE"], _tensors(signature))
    if version.metrics:
        out().print("\nMetrics")
        rows = ([f"{one['run']}/{one['tag']}".lstrip("/"), one["value"], one["step"]] for one in version.metrics)
        print_table(["SCALAR", "LAST VALUE", "STEP"], rows)
    out().print("\nFiles")
    print_table(["SIZE", "PATH"], ([size(file.size), file.path] for file in files))


def _named(one: Mapping[str, Any] | None) -> str:
    if not one:
        return ""
    return f"{one['name']}@{one['number']}" if one.get("name") else str(one.get("version", ""))


def _tensors(signature: Mapping[str, Any]) -> Iterator[list[str]]:
    for side in ("inputs", "outputs"):
        for one in signature[side]:
            shape = "…" if one["shape"] is None else ", ".join("?" if n is None else str(n) for n in one["shape"])
            yield [side[:-1], one["name"], one["dtype"], f"[{shape}]"]


@app.command()
def promote(
    reference: Reference,
    to: Annotated[str, typer.Option(help="production, staging, archived, or none.")] = "production",
    note: Annotated[str, typer.Option(help="Why; it stays in the history.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Give a version a stage. The one that was in production or staging before is archived."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        changed = portal.models.stage(version.id, "" if to == "none" else to, note)
    if as_json:
        print_json(changed)
    else:
        notes().print(Text(f"Version {changed.number} has the stage {changed.stage or 'none'}."))


@app.command()
def compare(
    reference: Reference,
    numbers: Annotated[list[int], typer.Argument(help="Two to five numbers of versions.")],
    everything: Annotated[bool, typer.Option("--all", help="Also what is the same.")] = False,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Versions of a model side by side: what differs."""
    with Yardmaster.from_environment() as portal:
        model = find_item(portal.models, reference, namespace)
        found = portal.models.compare(model.id, numbers)
    if as_json:
        print_json(found)
        return
    rows = [
        [one["name"], *one["values"]] for part in found["parts"] for one in part["rows"] if everything or one["differs"]
    ]
    print_table(["", *(f"@{one['number']}" for one in found["versions"])], rows)


@app.command()
def delete(
    reference: Reference,
    now: Annotated[bool, typer.Option("--now", help="Remove the files at once: they cannot be restored.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    namespace: Namespace = None,
) -> None:
    """Delete a model, or with name@version one version. Refused while it is in production or in use."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace) if "@" in reference else None
        model = portal.models.get(version.model) if version else find_item(portal.models, reference, namespace)
        what = f"version {version.number} of {model.name}" if version else f"{model.name} with all its versions"
        if not yes:
            typer.confirm(f"Delete {visible(what)}{' for good' if now else ''}?", abort=True, err=True)
        if version:
            portal.models.remove_version(version.id, now=now)
        else:
            portal.models.remove(model.id, now=now)
    target = version.id if version else model.id
    rest = "" if now else f" `yardmaster models restore {target}` brings it back during the grace period."
    notes().print(Text(f"Deleted {what}.{rest}"))


@app.command()
def restore(
    reference: Annotated[str, typer.Argument(help="The id of a deleted model or version, or a deleted model's name.")],
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Bring a deleted model or version back."""
    with Yardmaster.from_environment() as portal:
        deleted = portal.models.list(deleted="true", namespace=namespace)
        found = [one for one in deleted if reference in (one.id, one.name)]
        if len(found) > 1:
            ids = ", ".join(f"{one.id} ({one.namespace_slug or one.namespace})" for one in found)
            raise NotFound(f"Several deleted models are called {reference!r}: give --namespace, or the id: {ids}.")
        model = found[0] if found else None
        restored: Model | ModelVersion
        if model is None:
            restored = portal.models.restore_version(reference)
        else:
            restored = portal.models.restore(model.id)
    if as_json:
        print_json(restored)
    else:
        notes().print(Text("Restored."))


@app.command()
def download(
    reference: Reference,
    to: Annotated[
        Path | None, typer.Option(help="The target folder. Default: the model's name, in the current directory.")
    ] = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Fetch a version's files. Those that are there already are not fetched again."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        folder = to or folder_named(portal.models.get(version.model).name)
        with progress_bar(f"Downloading {reference}") as progress:
            files = portal.models.download(version.id, folder, progress)
    if as_json:
        print_json({"version": version.id, "files": [str(file) for file in files]})
    else:
        notes().print(Text(f"{len(files)} files are in {folder}."))
