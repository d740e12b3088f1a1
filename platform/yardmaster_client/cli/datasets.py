"""Datasets and code: the same commands for both, over the two stores of the SDK."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli import buckets, code, volumes
from yardmaster_client.cli.making import make
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
from yardmaster_client.cli.prepare import prepare
from yardmaster_client.downloads import folder_named
from yardmaster_client.names import find_item, find_version
from yardmaster_client.portal import Yardmaster
from yardmaster_client.stores import Store

FILES_SHOWN = 50
LINKS_NAMED = 5
ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz", ".tbz2", ".txz", ".tzst", ".tar", ".zip")
Reference = Annotated[str, typer.Argument(help="Name, name@version or id.")]


def register(parent: typer.Typer) -> None:
    data = _commands("dataset", "Datasets: upload, look at, download.")
    data.command("ls")(list_folder)
    data.command()(preview)
    data.command()(check)
    data.command()(prepare)
    data.command()(make)
    buckets.add_to(data)
    volumes.add_to(data)
    parent.add_typer(data, name="datasets")
    ours = _commands("code", "Code: what jobs run.")
    code.add_to(ours)
    parent.add_typer(ours, name="code")


def is_archive(path: Path) -> bool:
    """Whether the portal can extract a file of this name."""
    return path.is_file() and path.name.lower().endswith(ARCHIVES)


def name_of(path: Path) -> str:
    """What an upload of this is called where no name is given: that of the file or folder, without endings."""
    path = path.resolve()
    ending = next((one for one in ARCHIVES if is_archive(path) and path.name.lower().endswith(one)), "")
    return (path.name[: -len(ending)] if ending else path.stem) or path.name


class LinksLeftOut:
    """Counts them, and remembers the first names."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[str] = []

    def add(self, path: str) -> None:
        self._count += 1
        if len(self._first) < LINKS_NAMED:
            self._first.append(path)

    def tell(self, *, is_followed: bool) -> None:
        if not self._count:
            return
        more = f" and {self._count - len(self._first):,} more" if self._count > len(self._first) else ""
        remedy = (
            "they lead nowhere, or around in a circle" if is_followed else "--follow-links uploads what they lead to"
        )
        words = f"{self._count:,} links are left out ({', '.join(self._first)}{more}): {remedy}."
        notes().print(Text(visible(words)), style="yellow")


def _store(portal: Yardmaster, kind: str) -> Store[Any, Any]:
    return portal.datasets if kind == "dataset" else portal.code


def _commands(kind: str, help_text: str) -> typer.Typer:
    app = typer.Typer(help=help_text, no_args_is_help=True)
    _add_looking(app, kind)
    _add_download(app, kind)
    _add_changing(app, kind)
    return app


def _add_looking(app: typer.Typer, kind: str) -> None:
    """The commands that read."""

    @app.command("list")
    def list_items(namespace: Namespace = None, search: str | None = None, as_json: Json = False) -> None:
        """What there is, newest first."""
        with Yardmaster.from_environment() as portal:
            found = list(_store(portal, kind).list(namespace=namespace, search=search))
        if as_json:
            print_json(found)
        else:
            _print_items(found)

    @app.command()
    def show(
        reference: Reference,
        all_files: Annotated[bool, typer.Option("--all-files", help=f"Not the first {FILES_SHOWN} only.")] = False,
        namespace: Namespace = None,
        as_json: Json = False,
    ) -> None:
        """One of them: its versions, and the first files of the newest (or of the named) one."""
        with Yardmaster.from_environment() as portal:
            store = _store(portal, kind)
            version = find_version(store, reference, namespace)
            item = find_item(store, version.parent or reference.partition("@")[0], namespace)
            versions = list(store.versions(item.id))
            most = None if all_files else FILES_SHOWN
            files = list(islice(store.files(version.id, page_size=most), most))
        if as_json:
            print_json({"item": item, "versions": versions, "version": version, "files": files})
            return
        _print_item(item, versions, version)
        print_table(["SIZE", "PATH"], ([size(file.size), file.path] for file in files))
        if (left := (version.files or 0) - len(files)) > 0:
            folders = f" `yardmaster datasets ls {reference}` lists them by folder." if kind == "dataset" else ""
            notes().print(Text(f"{left:,} more files: --all-files prints them.{folders}"), style="dim")


def _add_download(app: typer.Typer, kind: str) -> None:
    @app.command()
    def download(
        reference: Reference,
        to: Annotated[
            Path | None, typer.Option(help="The target folder. Default: the name, in the current directory.")
        ] = None,
        namespace: Namespace = None,
        as_json: Json = False,
    ) -> None:
        """Fetch a version's files. Those that are there already are not fetched again."""
        with Yardmaster.from_environment() as portal:
            store = _store(portal, kind)
            version = find_version(store, reference, namespace)
            folder = to or folder_named(reference.partition("@")[0])
            with progress_bar(f"Downloading {reference}") as progress:
                files = store.download(version.id, folder, progress)
        if as_json:
            print_json({"version": version.id, "files": [str(file) for file in files]})
        else:
            notes().print(Text(f"{len(files)} files are in {folder}."))


def _add_changing(app: typer.Typer, kind: str) -> None:
    """The commands that write."""

    @app.command()
    def upload(
        paths: Annotated[list[Path], typer.Argument(help="Files, folders, or one archive with --unpack.")],
        name: Annotated[str | None, typer.Option(help="Default: the name of the first path.")] = None,
        namespace: Namespace = None,
        note: Annotated[str, typer.Option(help="A note for this version.")] = "",
        description: Annotated[str, typer.Option(help="A description, for a new item.")] = "",
        unpack: Annotated[bool, typer.Option("--unpack", help="Extract the archive on the portal.")] = False,
        follow_links: Annotated[bool, typer.Option("--follow-links", help="Upload what links lead to.")] = False,
        as_json: Json = False,
    ) -> None:
        """Upload files as a new version. If interrupted, the same command resumes."""
        name = name or name_of(paths[0])
        links = LinksLeftOut()
        with Yardmaster.from_environment() as portal, progress_bar(f"Uploading {name}") as progress:
            item = _store(portal, kind).put(
                name, paths, namespace=namespace, note=note, description=description, unpack=unpack,
                follow_links=follow_links, left_out=links.add, progress=progress,
            )  # fmt: skip
        links.tell(is_followed=follow_links)
        if not unpack and kind == "dataset" and len(paths) == 1 and is_archive(paths[0]):
            words = f"{paths[0].name} is stored as it is. To have the portal extract it, upload it with --unpack."
            notes().print(Text(visible(words)), style="dim")
        if as_json:
            print_json(item)
        else:
            number = item.latest.number if item.latest else "?"
            notes().print(Text(f"{item.name}@{number} is there ({size(item.latest.size) if item.latest else ''})."))

    @app.command()
    def delete(
        reference: Reference,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
        namespace: Namespace = None,
    ) -> None:
        """Delete it with all its versions. Refused while a job that is not over uses it."""
        with Yardmaster.from_environment() as portal:
            store = _store(portal, kind)
            item = find_item(store, reference, namespace)
            if not yes:
                typer.confirm(f"Delete {visible(item.name)} with all its versions?", abort=True, err=True)
            store.delete(item.id)
        notes().print(Text(f"Deleted {item.name}."))


def list_folder(
    reference: Reference,
    folder: Annotated[str, typer.Argument(help="A folder of it. Default: the outermost.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """List one folder of a version, with the files and bytes below each of its folders."""
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        rows = list(portal.datasets.entries(version.id, folder))
    if as_json:
        print_json(rows)
        return
    print_table(["FILES", "SIZE", "PATH"], ([one["files"], size(one["size"]), one["path"]] for one in rows))


def preview(
    reference: Reference,
    path: Annotated[str | None, typer.Argument(help="The file. Default: the first one.")] = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """What a file of a dataset looks like, without downloading it."""
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        if path is None:
            path = next(portal.datasets.files(version.id, page_size=1)).path
        found = portal.datasets.preview(version.id, path)
    if as_json:
        print_json(found)
        return
    print_facts(
        [(name, found.get(name)) for name in ("path", "kind", "format", "records")] + [("size", size(found["size"]))]
    )
    if table := found.get("table"):
        print_table(table["columns"], table["rows"])
    elif found.get("samples"):
        for sample in found["samples"]:
            out().print(f"\nRecord {sample['index']}")
            features = sample["features"]
            print_facts(
                [(one["name"], f"{one['dtype']}{one['shape']} {json.dumps(one['values'])}") for one in features]
            )
    elif text := found.get("text"):
        out().print(Text(text))


def check(reference: Reference, namespace: Namespace = None, as_json: Json = False) -> None:
    """Read every file in the store and compare it with its checksum. The exit code is 1 when one is damaged."""
    with Yardmaster.from_environment() as portal:
        version = find_version(portal.datasets, reference, namespace)
        corrupt = portal.datasets.check(version.id)
    if as_json:
        print_json({"version": version.id, "corrupt": corrupt})
    elif corrupt:
        print_table(["FILE", "WHAT IS WRONG"], [(one["path"], one["message"]) for one in corrupt])
        notes().print("Upload the damaged files as a new version, and launch with that.", style="dim")
    else:
        notes().print(Text(f"All files of {reference} are intact."))
    if corrupt:
        raise typer.Exit(1)


def _print_item(item: Any, versions: list[Any], version: Any) -> None:
    """What it is, its versions, and which of them the files are of."""
    print_facts([("name", item.name), ("id", item.id), ("description", item.description)])
    rows = ([f"@{one.number}", one.files, size(one.size), one.created_at, one.id, one.note] for one in versions)
    print_table(["VERSION", "FILES", "SIZE", "MADE", "ID", "NOTE"], rows)
    out().print(f"\nFiles of @{version.number}")


def _print_items(items: list[Any]) -> None:
    rows = []
    for item in items:
        latest = item.latest
        version = [f"@{latest.number}", latest.files, size(latest.size), latest.created_at] if latest else [""] * 4
        rows.append([item.name, item.namespace_slug, *version, item.id])
    print_table(["NAME", "NAMESPACE", "VERSION", "FILES", "SIZE", "MADE", "ID"], rows)
