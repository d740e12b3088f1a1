"""`Yardmaster` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.models import Job, Namespace, Token
from yardmaster_client.portal import Yardmaster


class AsyncYardmaster(Asynchronous):
    """See `portal.Yardmaster`."""

    _sync: Yardmaster

    async def me(self) -> dict[str, Any]:
        return await self._run(partial(self._sync.me))

    async def session_job(self) -> Job | None:
        """The job of the notebook session that this runs in, whose `namespace` and `engine` are also a good place for
        what it launches; None elsewhere."""
        return await self._run(partial(self._sync.session_job))

    def namespaces(self) -> AsyncGenerator[Namespace, None]:
        return self._iterate(partial(self._sync.namespaces))

    async def quota(self, namespace_id: str) -> dict[str, Any]:
        """`{"hard", "used", "reserved"}` of one namespace."""
        return await self._run(partial(self._sync.quota, namespace_id))

    async def launch_presets(self) -> list[dict[str, Any]]:
        """`{"name", "description", "engine", "spec", "problems"}` of each, in order: what administrators offer for
        launches."""
        return await self._run(partial(self._sync.launch_presets))

    async def bucket_register(self, **facts: str) -> dict[str, Any]:
        """Begin to make a bucket a dataset: name, bucket, secret; prefix, endpoint, region, namespace."""
        return await self._run(partial(self._sync.bucket_register, **facts))

    def buckets(self) -> AsyncGenerator[dict[str, Any], None]:
        """The registered buckets of all namespaces that one is in, with their last scans."""
        return self._iterate(partial(self._sync.buckets))

    async def bucket_rescan(self, dataset_id: str, *, secret: str = "") -> dict[str, Any]:
        """`secret`: the credentials to read the bucket with from now on."""
        return await self._run(partial(self._sync.bucket_rescan, dataset_id, secret=secret))

    def uploads(self, **filters: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Those that were not made into a version: `id`, `kind`, `state`, `size`, `file_count`."""
        return self._iterate(partial(self._sync.uploads, **filters))

    async def upload_discard(self, upload_id: str) -> None:
        """Delete what was sent, and return the quota that it holds."""
        await self._run(partial(self._sync.upload_discard, upload_id))

    async def bucket_wait(
        self, bucket_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None
    ) -> dict[str, Any]:
        """Until its scan has ended: `state` is then `ready` or `failed`. Calls `each` with what is known meanwhile."""
        return await self._run_long(partial(self._sync.bucket_wait, bucket_id, each))

    async def dataset_make(self, source: str, *, namespace: str = "") -> dict[str, Any]:
        """Have the portal make the dataset of a source that it knows, such as `keras/mnist`, unless it is there: `id`,
        `name`, `state`, `received`, `dataset_version`."""
        return await self._run(partial(self._sync.dataset_make, source, namespace=namespace))

    async def dataset_make_wait(
        self, made_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None
    ) -> dict[str, Any]:
        """Until it is made: `state` is then `ready` or `failed`. Calls `each` with what is known meanwhile."""
        return await self._run_long(partial(self._sync.dataset_make_wait, made_id, each))

    def secrets(self, namespace_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """What is known of a namespace's secrets. Their values are not."""
        return self._iterate(partial(self._sync.secrets, namespace_id))

    async def secret_set(self, namespace_id: str, name: str, secret: Mapping[str, Any]) -> dict[str, Any]:
        """Create the secret or replace it: `{"value"}`, or `{"kind": "s3", "access_key", "secret_key"}`."""
        return await self._run(partial(self._sync.secret_set, namespace_id, name, secret))

    async def secret_delete(self, namespace_id: str, name: str, *, force: bool = False) -> None:
        await self._run(partial(self._sync.secret_delete, namespace_id, name, force=force))

    def connections(self, namespace_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """The data connections of a namespace, without what was found in their clusters."""
        return self._iterate(partial(self._sync.connections, namespace_id))

    async def connection(self, namespace_id: str, name: str) -> dict[str, Any]:
        """One of them, with the caches and tables that the last check found."""
        return await self._run(partial(self._sync.connection, namespace_id, name))

    async def connection_set(self, namespace_id: str, name: str, **facts: Any) -> dict[str, Any]:
        """Register it or change it: hosts, tls, and the names of the secrets ca, certificate, certificate_password,
        username, password. Then the portal checks it."""
        return await self._run(partial(self._sync.connection_set, namespace_id, name, **facts))

    async def connection_check(self, namespace_id: str, name: str) -> dict[str, Any]:
        """Have the portal look at the cluster again."""
        return await self._run(partial(self._sync.connection_check, namespace_id, name))

    async def connection_wait(self, namespace_id: str, name: str) -> dict[str, Any]:
        """The connection when its check has ended: `state` is then `ready` or `failed`."""
        return await self._run_long(partial(self._sync.connection_wait, namespace_id, name))

    async def connection_copy(self, namespace_id: str, name: str, **wanted: Any) -> dict[str, Any]:
        """Have the portal copy rows into a new version of the dataset of this name: `dataset`, and `cache` or `query`.
        A copy: `id`, `state`, `rows`, `written`, `dataset_version`, `problem`."""
        return await self._run(partial(self._sync.connection_copy, namespace_id, name, **wanted))

    def connection_copies(self, namespace_id: str, name: str) -> AsyncGenerator[dict[str, Any], None]:
        """The copies from a data connection."""
        return self._iterate(partial(self._sync.connection_copies, namespace_id, name))

    async def connection_copy_wait(
        self, namespace_id: str, name: str, copy_id: str, each: Callable[[dict[str, Any]], None] = lambda one: None
    ) -> dict[str, Any]:
        """The copy when it has ended: `state` is then `ready`, `failed` or `cancelled`. Calls `each` with what is known
        meanwhile."""
        return await self._run_long(partial(self._sync.connection_copy_wait, namespace_id, name, copy_id, each))

    async def connection_copy_cancel(self, namespace_id: str, name: str, copy_id: str) -> dict[str, Any]:
        """Cancel a copy; nothing is left of it. One that has ended stays as it is."""
        return await self._run(partial(self._sync.connection_copy_cancel, namespace_id, name, copy_id))

    async def connection_delete(self, namespace_id: str, name: str, *, force: bool = False) -> None:
        await self._run(partial(self._sync.connection_delete, namespace_id, name, force=force))

    def volumes(self, namespace_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """The volumes of a namespace: `kind`, `engine`, `size`, `state`, `message`."""
        return self._iterate(partial(self._sync.volumes, namespace_id))

    async def volume_create(self, namespace_id: str, **wanted: Any) -> dict[str, Any]:
        """`kind` (`data` or `log`), `size` (bytes, or such as `100Gi`; without it all that is left of the storage
        quota), and `engine` if it is not the default."""
        return await self._run(partial(self._sync.volume_create, namespace_id, **wanted))

    async def volume_resize(self, namespace_id: str, volume_id: str, size: int | str) -> dict[str, Any]:
        return await self._run(partial(self._sync.volume_resize, namespace_id, volume_id, size))

    async def volume_delete(self, namespace_id: str, volume_id: str) -> None:
        await self._run(partial(self._sync.volume_delete, namespace_id, volume_id))

    def volume_versions(self, namespace_id: str, volume_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """What was published to a data volume: `dataset`, `number`, `version` (its id), `bytes`, `state`, `job`."""
        return self._iterate(partial(self._sync.volume_versions, namespace_id, volume_id))

    async def volume_version_remove(self, namespace_id: str, volume_id: str, version_id: str) -> dict[str, Any]:
        """Remove a version from a data volume, also one that the portal has deleted since: by a job (`job`)."""
        return await self._run(partial(self._sync.volume_version_remove, namespace_id, volume_id, version_id))

    async def volume_clean(self, namespace_id: str, volume_id: str) -> str:
        """Remove what deleted jobs left on a log volume, by a job, whose id is returned."""
        return await self._run(partial(self._sync.volume_clean, namespace_id, volume_id))

    async def version_on_volumes(self, version_id: str) -> list[dict[str, Any]]:
        """On which engines' data volumes a dataset version is, or is on its way: `engine`, `state`, `job`."""
        return await self._run(partial(self._sync.version_on_volumes, version_id))

    async def version_publish(self, version_id: str, *, engine: str | None = None) -> dict[str, Any]:
        """Publish a dataset version to the data volume of its namespace. One that is there is returned as it is."""
        return await self._run(partial(self._sync.version_publish, version_id, engine=engine))

    async def version_unpublish(self, version_id: str, *, engine: str | None = None) -> dict[str, Any]:
        """Remove it from there."""
        return await self._run(partial(self._sync.version_unpublish, version_id, engine=engine))

    async def usage(self, **query: str) -> dict[str, Any]:
        """Hours used by namespace, user and engine. `query`: `namespace`, `from`, `to` (times as ISO 8601)."""
        return await self._run(partial(self._sync.usage, **query))

    async def month_report(self, month: str) -> dict[str, Any]:
        """For administrators: what namespaces and users used in a month such as `2026-11`, and of which budgets."""
        return await self._run(partial(self._sync.month_report, month))

    async def month_report_csv(self, month: str, write: Callable[[bytes], object], *, by: str = "namespace") -> int:
        """The same as a table, `by` namespace, or namespace and `user`; returns its size."""
        return await self._run(partial(self._sync.month_report_csv, month, write, by=by))

    def tokens(self) -> AsyncGenerator[Token, None]:
        return self._iterate(partial(self._sync.tokens))

    async def token_create(
        self, name: str, scopes: Sequence[str] = (), expires_in: int | None = None, *, never_expires: bool = False
    ) -> tuple[Token, str]:
        """A new personal token and its secret, which is shown this once. `expires_in` in seconds; None: as long as the
        portal gives by default. `never_expires`: only where the portal allows it."""
        return await self._run(partial(self._sync.token_create, name, scopes, expires_in, never_expires=never_expires))

    async def token_revoke(self, token_id: str) -> None:
        await self._run(partial(self._sync.token_revoke, token_id))

    async def tokens_revoke_all(self, user_id: str | None = None) -> int:
        """Revoke every token of one's own, also the one that this client speaks with; for administrators: of another
        user. Returns how many there were."""
        return await self._run(partial(self._sync.tokens_revoke_all, user_id))

    def users(self) -> AsyncGenerator[dict[str, Any], None]:
        """For administrators: everybody who has an account."""
        return self._iterate(partial(self._sync.users))

    async def user_lock(self, user_id: str, *, stop_jobs: bool = False) -> int:
        """For administrators: end the user's sessions, tokens and connections, and with `stop_jobs` the jobs. Returns
        how many jobs were asked to stop."""
        return await self._run(partial(self._sync.user_lock, user_id, stop_jobs=stop_jobs))

    async def user_unlock(self, user_id: str) -> None:
        await self._run(partial(self._sync.user_unlock, user_id))

    def audit(self, **filters: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Who did what, newest first. Filters: action, actor_name, namespace, subject, since, until."""
        return self._iterate(partial(self._sync.audit, **filters))

    async def audit_export(self, form: str, write: Callable[[bytes], object], **filters: Any) -> int:
        """The same as a file, `csv` or `jsonl`; returns its size."""
        return await self._run(partial(self._sync.audit_export, form, write, **filters))

    async def token_revoke_own(self) -> None:
        """End the token that this client speaks with."""
        await self._run(partial(self._sync.token_revoke_own))
