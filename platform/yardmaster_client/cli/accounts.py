"""Signing in and out, who one is, and personal tokens."""

from __future__ import annotations

import os
import platform
import sys
import webbrowser
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, notes, out, print_facts, print_json, print_table
from yardmaster_client.credentials import Credentials, forget_credentials, load_credentials, save_credentials
from yardmaster_client.device import Asked
from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.names import NotFound
from yardmaster_client.portal import Yardmaster

DEFAULT_URL = "http://127.0.0.1:8080"

tokens = typer.Typer(help="Personal tokens, for scripts.", no_args_is_help=True)

users = typer.Typer(help="User accounts, for administrators.", no_args_is_help=True)
Username = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]


def register(app: typer.Typer) -> None:
    app.command()(login)
    app.command()(logout)
    app.command()(whoami)
    app.add_typer(tokens, name="tokens")
    app.add_typer(users, name="users")


def login(
    portal: Annotated[str | None, typer.Argument(metavar="[URL]", help="The portal's address.")] = None,
    url: Annotated[str | None, typer.Option(help="The same.", hidden=True)] = None,
    token: Annotated[
        str | None, typer.Option(help="A personal token, instead of the browser. - reads it from stdin.")
    ] = None,
    username: Annotated[
        str | None, typer.Option("--username", "-u", help="Sign in with name and password, instead of the browser.")
    ] = None,
    password: Annotated[str | None, typer.Option(envvar="YARDMASTER_PASSWORD", help="Prompted for if omitted.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="read, jobs, data or admin; several may be given. Default: full access.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only show the address, open nothing.")] = False,
) -> None:
    """Sign in, and remember it: by a code that you confirm in the browser, with name and password, or with a token."""
    address = _address(portal or url)
    if token is None:
        token = _new_token(address, username, password, scope or [], opens=not no_browser)
    elif token == "-":
        token = sys.stdin.readline().strip()
    with Yardmaster(address, token) as signed_in:
        name = signed_in.me()["username"]
    file = save_credentials(Credentials(address.rstrip("/"), token))
    notes().print(Text(f"Signed in to {address} as {name}. The token is kept in {file}."))


def _address(given: str | None) -> str:
    stored = load_credentials()
    address = given or os.environ.get("YARDMASTER_URL") or (stored.url if stored else "")
    if not address:
        address = typer.prompt("Portal", default=DEFAULT_URL, err=True) if _asks() else DEFAULT_URL
    return address if "://" in address else f"http://{address}"


def _new_token(address: str, username: str | None, password: str | None, scopes: list[str], *, opens: bool) -> str:
    name = f"yardmaster on {platform.node()}"[:100]
    if username is None and password is None:
        try:
            with Yardmaster.sign_in_by_browser(
                address, partial(_show_code, opens=opens), name=name, scopes=scopes
            ) as portal:
                return portal.transport.token
        except PortalError as error:
            if error.status not in (404, 405):
                raise  # else it is a portal that does not know such sign-ins yet
    username = username or typer.prompt("Name", err=True)
    password = password or typer.prompt("Password", hide_input=True, err=True)
    with Yardmaster.sign_in(address, username, password, name=name, scopes=scopes) as portal:
        return portal.transport.token


def _show_code(asked: Asked, *, opens: bool) -> None:
    notes().print(Text.assemble("Confirm this code in the browser: ", (asked.user_code, "bold")))
    notes().print(Text(f"  {asked.address_with_code}"))
    minutes = max(1, asked.expires_in // 60)
    notes().print(Text(f"Waiting for your confirmation, for {minutes} minutes. Ctrl-C cancels."), style="dim")
    if opens and _has_browser():
        webbrowser.open(asked.address_with_code)


def _has_browser() -> bool:
    """Whether a window can be opened where the user sits: not over SSH, and none in the terminal itself."""
    if not sys.stderr.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def logout(
    keep_token: Annotated[bool, typer.Option(help="Keep the token valid, for other machines that use it.")] = False,
) -> None:
    """Forget the token on this machine, and revoke it."""
    stored = load_credentials()
    if stored is None:
        notes().print("You were not signed in.")
        return
    still_good = "" if not keep_token and _revoke(stored) else " It stays valid until it is revoked or expires."
    forget_credentials()
    notes().print(Text(f"Signed out of {stored.url}.{still_good}"))


def _revoke(stored: Credentials) -> bool:
    """Whether the token is good for nothing any more. Signing out must not wait for a portal that is away."""
    try:
        with Yardmaster(stored.url, stored.token) as portal:
            portal.token_revoke_own()
    except PortalError as error:
        return error.status == 401
    except NotReachable:
        return False
    return True


def whoami(as_json: Json = False) -> None:
    """Who is signed in, and where."""
    with Yardmaster.from_environment() as portal:
        me = portal.me()
        if as_json:
            print_json(me | {"url": portal.transport.url})
            return
        spaces = ", ".join(f"{one['slug']} ({one['role']})" for one in me["namespaces"])
        kind = "administrator" if me["is_staff"] else ""
        print_facts([("portal", portal.transport.url), ("name", me["username"]), ("", kind), ("namespaces", spaces)])


@tokens.command("list")
def list_tokens(as_json: Json = False) -> None:
    """Your tokens, without their secrets."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.tokens())
    if as_json:
        print_json(found)
        return
    print_table(
        ["ID", "NAME", "SCOPES", "EXPIRES", "LAST USED"],
        (
            [one.id, one.name, ", ".join(one.scopes) or "everything", one.expires_at or "never", one.last_used_at]
            for one in found
        ),
    )


@tokens.command("create")
def create_token(
    name: str,
    scope: Annotated[list[str] | None, typer.Option(help="read, jobs, data or admin; several may be given.")] = None,
    days: Annotated[int | None, typer.Option(min=1, help="When it expires. Default: set by the portal.")] = None,
    never_expires: Annotated[bool, typer.Option("--never-expires", help="If the portal allows it.")] = False,
    as_json: Json = False,
) -> None:
    """Make a token. Its secret is printed, this once."""
    seconds = None if days is None else days * 86_400
    with Yardmaster.from_environment() as portal:
        token, secret = portal.token_create(name, scope or (), seconds, never_expires=never_expires)
    if as_json:
        about = {"id": token.id, "name": token.name, "scopes": token.scopes, "expires_at": token.expires_at}
        print_json(about | {"token": secret})
    else:
        out().print(Text(secret))
        notes().print("This is shown only once.", style="dim")


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str | None, typer.Argument(help="Its id or name.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All your tokens, including the one in use.")] = False,
) -> None:
    """Make a token useless at once, or all of them."""
    if everything == (token is not None):
        raise ValueError("Name one token, or give --all.")
    with Yardmaster.from_environment() as portal:
        if everything:
            count = portal.tokens_revoke_all()
            notes().print(
                Text(f"Revoked {count} token{'s' if count != 1 else ''}. Run `yardmaster login` to sign in again.")
            )
            return
        found = [one for one in portal.tokens() if token in (one.id, one.name)]
        if len(found) != 1:
            raise NotFound(f"There are {len(found)} tokens called {token!r}: `yardmaster tokens list` shows ids.")
        portal.token_revoke(found[0].id)
    notes().print(Text(f"Revoked {found[0].name}."))


@users.command("lock")
def lock_user(
    name: Username,
    stop_jobs: Annotated[bool, typer.Option("--stop-jobs", help="Also stop the user's jobs, everywhere.")] = False,
) -> None:
    """End every session, token and open connection of a user, and let nothing in any more."""
    with Yardmaster.from_environment() as portal:
        stopped = portal.user_lock(_user_id(portal, name), stop_jobs=stop_jobs)
    jobs = f" {stopped} job{'s' if stopped != 1 else ''} are being stopped." if stop_jobs else ""
    notes().print(Text(f"{name} is locked.{jobs}"))


@users.command("unlock")
def unlock_user(name: Username) -> None:
    """Let a user in again. Tokens that were revoked stay so."""
    with Yardmaster.from_environment() as portal:
        portal.user_unlock(_user_id(portal, name))
    notes().print(Text(f"{name} can sign in again."))


@users.command("revoke-tokens")
def revoke_tokens_of_user(name: Username) -> None:
    """End every personal token of a user."""
    with Yardmaster.from_environment() as portal:
        count = portal.tokens_revoke_all(_user_id(portal, name))
    notes().print(Text(f"Revoked {count} token{'s' if count != 1 else ''} of {name}."))


def _user_id(portal: Yardmaster, name: str) -> str:
    found = next((one for one in portal.users() if one["username"].casefold() == name.casefold()), None)
    if found is None:
        raise NotFound(f"There is no user called {name!r}.")
    return str(found["id"])


def _asks() -> bool:
    return os.isatty(0)
