"""The code of a job that is launched: a folder that is uploaded first, or an address of Git that the portal fetches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import notes, progress_bar, size, visible
from yardmaster_client.git import GitImport, is_git, wanted_of
from yardmaster_client.portal import Yardmaster

GitToken = Annotated[
    str | None,
    typer.Option("--git-token", metavar="SECRET", help="The secret with a token for a private repository."),
]


def with_code(
    portal: Yardmaster, spec: dict[str, Any], code: str | None, git_token: str | None, namespace: str | None
) -> dict[str, Any]:
    """The specification whose `code` is a version's id where it was a folder (`code`), or an address of Git."""
    if code is not None and not is_git(code):
        return spec | {"code": _put(portal, spec, Path(code), namespace)}
    meant = spec.get("code") if code is None else code
    if meant is None or not is_git(meant):
        return spec
    return spec | {"code": fetched(portal, meant, git_token or "", namespace)}


def fetched(portal: Yardmaster, code: str | Mapping[str, Any], git_token: str, namespace: str | None) -> str:
    """The id of the version that holds what the address means now."""
    wanted = wanted_of(code, git_token)
    console = notes()
    shown = Text(visible(f"Fetching {wanted['address']} …"))
    with console.status(shown) as status:

        def show(one: GitImport) -> None:
            words = {"fetching": "Fetching", "storing": "Storing"}.get(one.state, one.state)
            again = f" ({one.problem['detail']} Trying again.)" if one.problem and not one.is_over else ""
            status.update(Text(visible(f"{words} {one.repository}: {size(one.bytes)}{again}")))

        found = portal.code.fetch(**wanted, namespace=namespace, each=show)
    for words in found.warnings:
        console.print(Text(words, style="yellow"))
    where = f"{found.repository}{f' @ {found.ref}' if found.ref else ''} is commit {found.commit[:12]}"
    console.print(Text(f"{where}{'' if found.is_new else ', which is there already'}."), style="dim")
    assert found.code_version is not None
    return found.code_version


def _put(portal: Yardmaster, spec: dict[str, Any], folder: Path, namespace: str | None) -> str:
    """The id of the version that holds the folder: the newest where nothing changed, else a new one. It is called as
    the file calls its code, else as the job."""
    wanted = spec.get("code")
    is_named = isinstance(wanted, str) and wanted and not is_git(wanted)
    name = str(wanted).partition("@")[0] if is_named else str(spec.get("name") or folder.name)
    with progress_bar(f"Uploading {folder}") as progress:
        item = portal.code.put(name, [folder], namespace=namespace, unless_same=True, progress=progress)
    assert item.latest is not None
    notes().print(Text(f"Code {item.name}@{item.latest.number}."), style="dim")
    return item.latest.id
