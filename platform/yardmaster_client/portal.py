"""`Yardmaster`: everything that a program can ask of the portal, by subject."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote

from yardmaster_client import device
from yardmaster_client.code import CodeStore
from yardmaster_client.credentials import load_credentials
from yardmaster_client.errors import NotSignedIn
from yardmaster_client.images import Images
from yardmaster_client.jobs import Jobs
from yardmaster_client.models import (
    Dataset,
    DatasetVersion,
    Job,
    Namespace,
    Token,
    read,
)
from yardmaster_client.registry import Models
from yardmaster_client.schedules import Schedules, Templates
from yardmaster_client.services import Services
from yardmaster_client.sessions import Sessions
from yardmaster_client.signed import Passing
from yardmaster_client.spark_clusters import SparkClusters
from yardmaster_client.stores import Store
from yardmaster_client.sweeps import Sweeps
from yardmaster_client.transport import Transport


class Yardmaster:
    """A portal, seen by one user. Use it as a context manager, or call `close`."""

    def __init__(self, url: str, token: str = "") -> None:
        self.transport = Transport(url, token)
        self.jobs = Jobs(self.transport)
        self.datasets: Store[Dataset, DatasetVersion] = Store(self.transport, "dataset", Dataset, DatasetVersion)
        self.code = CodeStore(self.transport)
        self.models = Models(self.transport)
        self.services = Services(self.transport)
        self.sessions = Sessions(self.transport)
        self.images = Images(self.transport)
        self.spark_clusters = SparkClusters(self.transport)
        self.sweeps = Sweeps(self.transport)
        self.templates = Templates(self.transport)
        self.schedules = Schedules(self.transport)

    @classmethod
    def from_environment(cls) -> Yardmaster:
        """From YARDMASTER_URL and YARDMASTER_TOKEN, else from what `yardmaster login` has stored.

        Raises:
            NotSignedIn: neither is there.
        """
        stored = load_credentials()
        url = os.environ.get("YARDMASTER_URL") or (stored.url if stored else "")
        token = os.environ.get("YARDMASTER_TOKEN") or (stored.token if stored else "")
        if not url or not token:
            raise NotSignedIn("Not signed in: run `yardmaster login`, or set YARDMASTER_URL and YARDMASTER_TOKEN.")
        return cls(url, token)

    @classmethod
    def sign_in(
        cls, url: str, username: str, password: str, *, name: str = "command line", scopes: Sequence[str] = ()
    ) -> Yardmaster:
        """With a new personal token in exchange for a password."""
        with Yardmaster(url) as stranger:
            body = {"username": username, "password": password, "name": name, "scopes": list(scopes)}
            return cls(url, stranger.transport.post("auth/token/", body)["token"])

    @classmethod
    def sign_in_by_browser(
        cls, url: str, show: Callable[[device.Asked], object], *, name: str = "Python", scopes: Sequence[str] = ()
    ) -> Yardmaster:
        """With a new personal token that the user confirms in a browser: `show` is called with the code and the
        address. Blocks until the user has decided.

        Raises:
            PortalError: `access_denied`, `expired_token`, or 404 from a portal without such sign-ins.
        """
        with Yardmaster(url) as stranger:
            return cls(url, device.sign_in(stranger.transport, show, name=name, scopes=scopes))

    def me(self) -> dict[str, Any]:
        return dict(self.transport.get("me/"))

    def session_job(self) -> Job | None:
        """The job of the notebook session that this runs in, whose `namespace` and `engine` are also a good place for
        what it launches; None elsewhere."""
        session = os.environ.get("YARDMASTER_SESSION")
        return self.jobs.get(self.transport.get(f"sessions/{session}/")["job"]) if session else None

    def namespaces(self) -> Iterator[Namespace]:
        return (read(Namespace, row) for row in self.transport.pages("namespaces/"))

    def quota(self, namespace_id: str) -> dict[str, Any]:
        """`{"hard", "used", "reserved"}` of one namespace."""
        return dict(self.transport.get(f"namespaces/{namespace_id}/quota/"))

    def launch_presets(self) -> list[dict[str, Any]]:
        """`{"name", "description", "engine", "spec", "problems"}` of each, in order: what administrators offer for
        launches."""
        found: list[dict[str, Any]] = self.transport.get("launch-presets/")
        return found

    def bucket_register(self, **facts: str) -> dict[str, Any]:
        """Begin to make a bucket a dataset: name, bucket, secret; prefix, endpoint, region, namespace."""
        return dict(self.transport.post("buckets/", facts))

    def buckets(self) -> Iterator[dict[str, Any]]:
        """The registered buckets of all namespaces that one is in, with their last scans."""
        return self.transport.pages("buckets/")

    def bucket_rescan(self, dataset_id: str, *, secret: str = "") -> dict[str, Any]:
        """`secret`: the credentials to read the bucket with from now on."""
        return dict(self.transport.post(f"datasets/{dataset_id}/rescan/", {"secret": secret} if secret else None))

    def uploads(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Those that were not made into a version: `id`, `kind`, `state`, `size`, `file_count`."""
        return self.transport.pages("uploads/", **filters)

    def upload_discard(self, upload_id: str) -> None:
        """Delete what was sent, and return the quota that it holds."""
        self.transport.delete(f"uploads/{upload_id}/")

    def bucket_wait(self, bucket_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None) -> dict[str, Any]:
        """Until its scan has ended: `state` is then `ready` or `failed`. Calls `each` with what is known meanwhile."""
        while True:
            found = dict(self.transport.get(f"buckets/{bucket_id}/"))
            each(found)
            if found["state"] != "scanning":
                return found
            time.sleep(1.0)

    def dataset_make(self, source: str, *, namespace: str = "") -> dict[str, Any]:
        """Have the portal make the dataset of a source that it knows, such as `keras/mnist`, unless it is there: `id`,
        `name`, `state`, `received`, `dataset_version`."""
        return dict(self.transport.post("made-datasets/", {"source": source, "namespace": namespace}))

    def dataset_make_wait(
        self, made_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None
    ) -> dict[str, Any]:
        """Until it is made: `state` is then `ready` or `failed`. Calls `each` with what is known meanwhile."""
        while True:
            found = dict(self.transport.get(f"made-datasets/{made_id}/"))
            each(found)
            if found["state"] != "making":
                return found
            time.sleep(1.0)

    def secrets(self, namespace_id: str) -> Iterator[dict[str, Any]]:
        """What is known of a namespace's secrets. Their values are not."""
        return (dict(row) for row in self.transport.pages(f"namespaces/{namespace_id}/secrets/"))

    def secret_set(self, namespace_id: str, name: str, secret: Mapping[str, Any]) -> dict[str, Any]:
        """Create the secret or replace it: `{"value"}`, or `{"kind": "s3", "access_key", "secret_key"}`."""
        return dict(self.transport.put(f"namespaces/{namespace_id}/secrets/{name}/", secret))

    def secret_delete(self, namespace_id: str, name: str, *, force: bool = False) -> None:
        self.transport.delete(f"namespaces/{namespace_id}/secrets/{name}/" + ("?force=1" if force else ""))

    def connections(self, namespace_id: str) -> Iterator[dict[str, Any]]:
        """The data connections of a namespace, without what was found in their clusters."""
        return (dict(row) for row in self.transport.pages(f"namespaces/{namespace_id}/connections/"))

    def connection(self, namespace_id: str, name: str) -> dict[str, Any]:
        """One of them, with the caches and tables that the last check found."""
        return dict(self.transport.get(f"namespaces/{namespace_id}/connections/{name}/"))

    def connection_set(self, namespace_id: str, name: str, **facts: Any) -> dict[str, Any]:
        """Register it or change it: hosts, tls, and the names of the secrets ca, certificate, certificate_password,
        username, password. Then the portal checks it."""
        return dict(self.transport.put(f"namespaces/{namespace_id}/connections/{name}/", facts))

    def connection_check(self, namespace_id: str, name: str) -> dict[str, Any]:
        """Have the portal look at the cluster again."""
        return dict(self.transport.post(f"namespaces/{namespace_id}/connections/{name}/check/", {}))

    def connection_wait(self, namespace_id: str, name: str) -> dict[str, Any]:
        """The connection when its check has ended: `state` is then `ready` or `failed`."""
        while (found := self.connection(namespace_id, name))["state"] == "checking":
            time.sleep(1.0)
        return found

    def connection_copy(self, namespace_id: str, name: str, **wanted: Any) -> dict[str, Any]:
        """Have the portal copy rows into a new version of the dataset of this name: `dataset`, and `cache` or `query`.
        A copy: `id`, `state`, `rows`, `written`, `dataset_version`, `problem`."""
        return dict(self.transport.post(f"namespaces/{namespace_id}/connections/{name}/copies/", wanted))

    def connection_copies(self, namespace_id: str, name: str) -> Iterator[dict[str, Any]]:
        """The copies from a data connection."""
        return (dict(row) for row in self.transport.pages(f"namespaces/{namespace_id}/connections/{name}/copies/"))

    def connection_copy_wait(
        self, namespace_id: str, name: str, copy_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None
    ) -> dict[str, Any]:
        """The copy when it has ended: `state` is then `ready`, `failed` or `cancelled`. Calls `each` with what is known
        meanwhile."""
        while True:
            found = dict(self.transport.get(f"namespaces/{namespace_id}/connections/{name}/copies/{copy_id}/"))
            each(found)
            if found["state"] != "copying":
                return found
            time.sleep(1.0)

    def connection_copy_cancel(self, namespace_id: str, name: str, copy_id: str) -> dict[str, Any]:
        """Cancel a copy; nothing is left of it. One that has ended stays as it is."""
        return dict(
            self.transport.post(f"namespaces/{namespace_id}/connections/{name}/copies/{copy_id}/cancel/", {})
        )  # fmt: skip

    def connection_delete(self, namespace_id: str, name: str, *, force: bool = False) -> None:
        self.transport.delete(f"namespaces/{namespace_id}/connections/{name}/" + ("?force=1" if force else ""))

    def volumes(self, namespace_id: str) -> Iterator[dict[str, Any]]:
        """The volumes of a namespace: `kind`, `engine`, `size`, `state`, `message`."""
        return (dict(row) for row in self.transport.pages(f"namespaces/{namespace_id}/volumes/"))

    def volume_create(self, namespace_id: str, **wanted: Any) -> dict[str, Any]:
        """`kind` (`data` or `log`), `size` (bytes, or such as `100Gi`; without it all that is left of the storage
        quota), and `engine` if it is not the default."""
        return dict(self.transport.post(f"namespaces/{namespace_id}/volumes/", wanted))

    def volume_resize(self, namespace_id: str, volume_id: str, size: int | str) -> dict[str, Any]:
        return dict(self.transport.patch(f"namespaces/{namespace_id}/volumes/{volume_id}/", {"size": size}))

    def volume_delete(self, namespace_id: str, volume_id: str) -> None:
        self.transport.delete(f"namespaces/{namespace_id}/volumes/{volume_id}/")

    def volume_versions(self, namespace_id: str, volume_id: str) -> Iterator[dict[str, Any]]:
        """What was published to a data volume: `dataset`, `number`, `version` (its id), `bytes`, `state`, `job`."""
        return (dict(row) for row in self.transport.pages(f"namespaces/{namespace_id}/volumes/{volume_id}/versions/"))

    def volume_version_remove(self, namespace_id: str, volume_id: str, version_id: str) -> dict[str, Any]:
        """Remove a version from a data volume, also one that the portal has deleted since: by a job (`job`)."""
        address = f"namespaces/{namespace_id}/volumes/{volume_id}/versions/{version_id}/"
        return dict(self.transport.ask("DELETE", address))

    def volume_clean(self, namespace_id: str, volume_id: str) -> str:
        """Remove what deleted jobs left on a log volume, by a job, whose id is returned."""
        return str(self.transport.post(f"namespaces/{namespace_id}/volumes/{volume_id}/clean/", {})["job"])

    def version_on_volumes(self, version_id: str) -> list[dict[str, Any]]:
        """On which engines' data volumes a dataset version is, or is on its way: `engine`, `state`, `job`."""
        return [dict(row) for row in self.transport.get(f"dataset-versions/{version_id}/volume/")]

    def version_publish(self, version_id: str, *, engine: str | None = None) -> dict[str, Any]:
        """Publish a dataset version to the data volume of its namespace. One that is there is returned as it is."""
        body = {} if engine is None else {"engine": engine}
        return dict(self.transport.put(f"dataset-versions/{version_id}/volume/", body))

    def version_unpublish(self, version_id: str, *, engine: str | None = None) -> dict[str, Any]:
        """Remove it from there."""
        query = {} if engine is None else {"engine": engine}
        return dict(self.transport.ask("DELETE", f"dataset-versions/{version_id}/volume/", params=query))

    def usage(self, **query: str) -> dict[str, Any]:
        """Hours used by namespace, user and engine. `query`: `namespace`, `from`, `to` (times as ISO 8601)."""
        return dict(self.transport.get("usage/", **query))

    def month_report(self, month: str) -> dict[str, Any]:
        """For administrators: what namespaces and users used in a month such as `2026-11`, and of which budgets."""
        return dict(self.transport.get(f"admin/usage/{quote(month, safe='')}/"))

    def month_report_csv(self, month: str, write: Callable[[bytes], object], *, by: str = "namespace") -> int:
        """The same as a table, `by` namespace, or namespace and `user`; returns its size."""
        target = Passing(lambda piece: write(bytes(piece)))
        self.transport.download(f"admin/usage/{quote(month, safe='')}/", target, **{"as": "csv", "by": by})
        return target.size

    def tokens(self) -> Iterator[Token]:
        return (read(Token, row) for row in self.transport.pages("tokens/"))

    def token_create(
        self, name: str, scopes: Sequence[str] = (), expires_in: int | None = None, *, never_expires: bool = False
    ) -> tuple[Token, str]:
        """A new personal token and its secret, which is shown this once. `expires_in` in seconds; None: as long as the
        portal gives by default. `never_expires`: only where the portal allows it."""
        wish: dict[str, Any] = {"name": name, "scopes": list(scopes)}
        if expires_in is not None or never_expires:
            wish["expires_in"] = None if never_expires else expires_in
        row = self.transport.post("tokens/", wish)
        return read(Token, row), row["token"]

    def token_revoke(self, token_id: str) -> None:
        self.transport.delete(f"tokens/{token_id}/")

    def tokens_revoke_all(self, user_id: str | None = None) -> int:
        """Revoke every token of one's own, also the one that this client speaks with; for administrators: of another
        user. Returns how many there were."""
        path = "tokens/" if user_id is None else f"users/{user_id}/tokens/"
        return int(self.transport.delete(path)["revoked"])

    def users(self) -> Iterator[dict[str, Any]]:
        """For administrators: everybody who has an account."""
        return (dict(row) for row in self.transport.pages("users/", page_size=200))

    def user_lock(self, user_id: str, *, stop_jobs: bool = False) -> int:
        """For administrators: end the user's sessions, tokens and connections, and with `stop_jobs` the jobs. Returns
        how many jobs were asked to stop."""
        return int(self.transport.post(f"users/{user_id}/lock/", {"stop_jobs": stop_jobs})["stopped_jobs"])

    def user_unlock(self, user_id: str) -> None:
        self.transport.patch(f"users/{user_id}/", {"is_active": True})

    def audit(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Who did what, newest first. Filters: action, actor_name, namespace, subject, since, until."""
        return (dict(row) for row in self.transport.pages("audit/", **filters))

    def audit_export(self, form: str, write: Callable[[bytes], object], **filters: Any) -> int:
        """The same as a file, `csv` or `jsonl`; returns its size."""
        target = Passing(lambda piece: write(bytes(piece)))
        self.transport.download("audit/export/", target, **{"as": form, **filters})
        return target.size

    def token_revoke_own(self) -> None:
        """End the token that this client speaks with."""
        self.transport.delete("tokens/current/")

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Yardmaster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
