"""The object stores that a portal can have, from the environment: a folder, and an S3 server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portal import env

S3_ENDPOINT = env.text("YARDMASTER_S3_ENDPOINT")


def stores(home: Path, public_url: str, task_url: str, secret_key: str) -> dict[str, dict[str, Any]]:
    """By name. One is used; `manage.py copy_objects` copies one to another."""
    return {
        # Served by the portal itself.
        "folder": {
            "class": "yardmaster.storage.local.LocalStorage",
            "options": {
                "root": home / "objects",
                "base_url": public_url,
                "task_url": task_url,
                "signing_key": secret_key,
            },
        },
        # A server, such as MinIO; browsers and tasks may see it under other addresses than the portal.
        "s3": {
            "class": "yardmaster.storage.s3.S3Storage",
            "options": {
                "endpoint": S3_ENDPOINT,
                "bucket": env.text("YARDMASTER_S3_BUCKET", "yardmaster"),
                "bucket_per_namespace": env.flag("YARDMASTER_S3_BUCKET_PER_NAMESPACE"),
                "prefix": env.text("YARDMASTER_S3_PREFIX"),
                "access_key": env.text("YARDMASTER_S3_ACCESS_KEY"),
                "secret_key": env.text("YARDMASTER_S3_SECRET_KEY"),
                "region": env.text("YARDMASTER_S3_REGION", "us-east-1"),
                "public_endpoint": env.text("YARDMASTER_S3_PUBLIC_ENDPOINT"),
                "task_endpoint": env.text("YARDMASTER_S3_TASK_ENDPOINT"),
            },
        },
    }


def ignite(public_url: str, task_url: str, secret_key: str) -> dict[str, Any]:
    """The store in Apache Ignite that jobs may choose for checkpoints and outputs; empty where none is set."""
    hosts = env.text("YARDMASTER_IGNITE_STORE")
    options = {
        "hosts": hosts,
        "username": env.text("YARDMASTER_IGNITE_STORE_USER"),
        "password_file": env.text("YARDMASTER_IGNITE_STORE_PASSWORD_FILE"),
        "certificate_file": env.text("YARDMASTER_IGNITE_STORE_CERTIFICATE_FILE"),
        "name": env.text("YARDMASTER_IGNITE_STORE_NAME", "YARDMASTER"),
        "backups": env.number("YARDMASTER_IGNITE_STORE_BACKUPS", 1),
        "region": env.text("YARDMASTER_IGNITE_STORE_REGION"),
        "base_url": public_url,
        "task_url": task_url,
        "signing_key": secret_key,
    }
    return {"class": "yardmaster.storage.ignite.IgniteStorage", "options": options} if hosts else {}


def name_of_used() -> str:
    """The store that this portal uses: the one that is named, else the S3 server where one is set."""
    return env.one_of("YARDMASTER_STORE", ["folder", "s3"], "s3" if S3_ENDPOINT else "folder")


def store_url_of_pods() -> str:
    """The store as pods see it, where it has a server of its own."""
    return env.text("YARDMASTER_S3_TASK_ENDPOINT", S3_ENDPOINT) if name_of_used() == "s3" else ""
