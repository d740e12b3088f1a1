"""A valid body and valid queries for each operation that needs more than the schema says, with the ids of the populated
team. They are sent as they are, and spoiled in one place. Not here: what breaks them (`nasty`)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

Body = dict[str, Any]
_LIMITS = {"cpu": 8, "memory": "16Gi", "gpus": None, "storage": "1Ti", "running_jobs": 4}
_SUM = "a" * 64


def bodies_of(ids: dict[str, Any]) -> dict[str, Body]:
    """By operation. `ids`: those of the populated team, and `spec`, `upload`, `code_upload`, `version`, `password`."""
    return {
        **_jobs(ids), **_data(ids), **_teams(ids), **_people(ids), **_administration(ids), **_rest(ids), **_tasks(ids)
    }  # fmt: skip


def _jobs(ids: dict[str, Any]) -> dict[str, Body]:
    wish = {"namespace": "vision", "engine": "local", "spec": ids["spec"]}
    template = {"name": "weekly", "namespace": "vision", "spec": ids["spec"], "engine": "local", "parameters": []}
    preset = {"strategy": "single", "roles": {"worker": {"replicas": 1}}}
    schedule = {"name": "weekly", "cron": "0 2 * * *", "time_zone": "Europe/Berlin", "template": ids["template_id"]}
    return {
        "jobs_create": {**wish, "accept_never_fits": True},
        "jobs_check_create": wish,
        "jobs_manifests_create": wish,
        "jobs_export_create": {**wish, "claim": "data", "image": "registry/image:1"},
        "jobs_import_create": {"text": ids["tfjob"], "namespace": "vision"},
        "jobs_partial_update": {"name": "other", "note": "good", "tags": ["a", "b"], "archived": False},
        "jobs_retry_create": {"accept_never_fits": True, "resume": False},
        "sweeps_create": {**wish, "plan": {"parameters": {"lr": [0.1, 0.2]}}, "accept_never_fits": True},
        "job_templates_create": template,
        "job_templates_partial_update": {key: template[key] for key in ("name", "spec", "parameters")},
        "job_templates_launch_create": {"parameters": {}, "name": "digits", "accept_never_fits": True},
        "schedules_create": schedule | {"parameters": {}, "overlap": "skip", "grace": 600, "keeps": 10},
        "schedules_partial_update": {"name": "b", "cron": "*/5 * * * *", "ends_at": _later(9), "overlap": "queue"},
        "schedules_times_create": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
        "launch_presets_create": {"name": "Big", "description": "", "engine": "local", "spec": preset},
        "launch_presets_update": {"name": "Big", "spec": preset},
        "launch_presets_place_update": {"to": 0},
    }


def _data(ids: dict[str, Any]) -> dict[str, Body]:
    file = {"path": "a.txt", "size": 3, "sha256": _SUM}
    return {
        "datasets_create": {"name": "flowers", "namespace": "vision", "description": "", "upload": ids["upload"]},
        "code_create": {"name": "flowers", "namespace": "vision", "upload": ids["code_upload"]},
        "datasets_versions_create": {"upload": ids["upload"], "note": "more"},
        "code_versions_create": {"upload": ids["code_upload"], "note": "more"},
        "datasets_partial_update": {"name": "other", "description": "text"},
        "code_partial_update": {"name": "other", "description": "text"},
        "models_partial_update": {"name": "other", "description": "text"},
        "dataset_versions_prepare_create": {"to": "tfrecord", "namespace": "vision", "accept_never_fits": True},
        "dataset_versions_volume_update": {"engine": "local"},
        "uploads_create": {"namespace": "vision", "kind": "dataset", "files": [file]},
        "uploads_parts_create": {"parts": [{"file": 0, "part": 1, "sha256": _SUM}]},
        "uploads_files_create": {"after": 1, "files": [file]},
        "uploads_complete_create": {"unpack": False},
        "buckets_create": {
            "namespace": "vision", "name": "far", "bucket": "far-away", "prefix": "a/", "region": "eu-1",
            "endpoint": "http://127.0.0.1:9000", "secret": "keys",
        },
        "made_datasets_create": {"namespace": "vision", "source": "keras/mnist"},
        "code_imports_create": {"address": "https://github.com/a/b", "ref": "main", "namespace": "vision", "name": "b"},
        "model_versions_stage_create": {"stage": "production", "note": "good"},
        "model_versions_batch_create": {"dataset_version": ids["dataset_version"], "to": "out", "namespace": "vision"},
        **{f"model_versions_{verb}_create": {"instances": [[1.0]]} for verb in ("predict", "classify", "regress")},
        "stage_model_predict": {"instances": [[1.0]]},
        "service_model_predict": {"instances": [[1.0]]},
    }  # fmt: skip


def _teams(ids: dict[str, Any]) -> dict[str, Body]:
    return {
        "namespaces_create": {"slug": "speech", "title": "Speech", "manager": "manager"},
        "namespaces_partial_update": {"title": "Vision"},
        "namespaces_budget_update": {"cpu_hours": "10", "memory_gib_hours": None, "gpu_hours": "1.5", "money": "9.99"},
        "namespaces_members_create": {"username": "stranger", "role": "member"},
        "namespaces_members_many_create": {"usernames": ["stranger"], "role": "viewer"},
        "namespaces_members_partial_update": {"role": "viewer"},
        "namespaces_quota_update": {**_LIMITS, "reason": "more"},
        "namespaces_secrets_update": {"kind": "text", "value": "hush", "description": "text"},
        "namespaces_connections_update": {"hosts": "one.example.org:10801", "tls": False, "username": "", "ca": ""},
        "namespaces_connections_copies_create": {"dataset": "rows", "cache": "IMAGES", "query": ""},
        "namespaces_service_accounts_create": {"name": "weekly", "role": "member", "description": "builds"},
        "namespaces_service_accounts_partial_update": {"role": "viewer"},
        "namespaces_service_accounts_tokens_create": {"name": "ci", "scopes": ["read", "jobs"], "expires_in": 3600},
        "namespaces_service_accounts_tokens_rotation_create": {"overlap": 60},
        "namespaces_volumes_create": {"kind": "data", "size": "1Gi", "engine": "local"},
        "namespaces_volumes_partial_update": {"size": "2Gi"},
        "namespaces_webhooks_create": {"events": ["job.failed"], "url": "https://example.org/a", "format": "json"},
        "namespaces_webhooks_partial_update": {"url": "https://example.org/b", "events": ["job.failed"]},
        "namespaces_removal_create": {"data": "keep"},
        "invitations_create": {"email": "new@example.org", "namespace": "vision", "role": "member", "uses": 1},
    }


def _people(ids: dict[str, Any]) -> dict[str, Body]:
    return {
        "account_notifications_partial_update": {
            "choices": [{"kind": "job.failed", "namespace": None, "way": "mail", "pace": "daily"}],
            "wait_minutes": 60, "with_log": True, "daily_hour": 7, "flood": 5,
        },
        "account_notifications_chat_update": {"url": "https://example.org/hook", "format": "slack"},
        "auth_device_create": {"name": "laptop"},
        "auth_device_token_create": {"device_code": "x" * 43},
        "auth_token_create": {"name": "new", "username": "member", "password": "x", "scopes": ["read"]},
        "tokens_create": {"name": "new", "scopes": ["read"], "expires_in": 3600},
        "me_partial_update": {"first_name": "Ada", "last_name": "L."},
        "users_create": {"username": "new", "password": ids["password"], "email": "new@example.org"},
        "users_partial_update": {"email": "other@example.org", "first_name": "A", "is_active": True},
        "users_lock_create": {"stop_jobs": False},
        "users_removal_create": {"data": "keep"},
    }  # fmt: skip


def _administration(ids: dict[str, Any]) -> dict[str, Body]:
    bulk = {"namespaces": [ids["namespace_id"]], "changes": {"cpu": 4}, "reason": "a deadline"}
    window = {"begins_at": _later(2), "ends_at": _later(3)}
    return {
        "admin_notice_update": {"text": "Maintenance", "kind": "warning", "begins_at": None, "ends_at": _later(1)},
        "images_create": {
            "name": "other",
            "reference": f"registry.example.org/other@sha256:{_SUM}",
            "everyone": True,
            "strategies": ["single"],
        },
        "images_partial_update": {"description": "text", "enabled": False, "namespaces": ["vision"]},
        "preemption_partial_update": {"is_on": True, "least_minutes": 10, "most_a_day": 3},
        "priority_classes_create": {"name": "urgent", "value": 100, "users": "everyone", "namespaces": []},
        "priority_classes_partial_update": {"value": 50, "description": "text", "preempts": True},
        "queue_actions_create": {"action": "hold", "jobs": [ids["job_id"]], "reason": "wait"},
        "quotas_bulk_create": bulk,
        "quotas_defaults_update": {**_LIMITS, "reason": "growth"},
        "quotas_scheduled_create": {**bulk, "starts": _later(1), "ends": _later(2)},
        "reservations_create": {"engine": "local", "namespace": "vision", "amounts": {"cpu": 1}, **window},
        "shares_create": {"name": "research", "weight": 2, "parent": None, "guaranteed": {}, "reason": "fair"},
        "shares_partial_update": {"weight": 3, "reason": "fair"},
    }


def _rest(ids: dict[str, Any]) -> dict[str, Body]:
    return {
        "services_create": {"model_version": ids["version"], "engine": "local", "accept_never_fits": True},
        "services_extend_create": {"idle_limit": 600},
        "sessions_create": {"kind": "tensorboard", "namespace": "vision", "jobs": [ids["job_id"]], "engine": "local"},
        "sessions_extend_create": {"idle_limit": 600},
        "sessions_restart_create": {"size": "small"},
    }


def _tasks(ids: dict[str, Any]) -> dict[str, Body]:
    task = {"role": "worker", "index": 0}
    file = {"path": "a.txt", "size": 3, "sha256": _SUM}
    holder = "01890a5d-ac96-774b-bcce-b302099a8057"
    return {
        "task_report_create": {
            **task, "restart": 0, "state": "running", "held_until": 0.0, "progress": {"step": 1, "total": 10},
            "usage": {"cpu_seconds": 1.5, "memory": 1, "peak_memory": 2},
            "scalars": [{"run": "train", "tag": "loss", "step": 1, "time": 1.0, "value": 0.5}],
        },
        "task_agreed_create": {**task, "name": "a", "value": "0,1"},
        "task_log_gap_create": {"lines": 1, "bytes": 10},
        "task_log_open_create": {"text": "half a line"},
        "task_outputs_create": {**task, "shared": False, "files": [file]},
        "task_checkpoints_create": {"files": [file], "step": 10},
        "task_model_create": {"files": [file], "stopped": False},
        "task_packages_create": {**task, "lock": [{"name": "numpy", "version": "2.0", "sha256": _SUM}]},
        "task_published_create": {**task, "files": [file]},
        "task_uploads_parts_create": {"parts": [{"file": 0, "part": 1, "sha256": _SUM}]},
        "task_environment_create": {
            **task, "requirements": ["numpy"], "python": "3.11", "image": _SUM, "holder": holder
        },
    }  # fmt: skip


def _later(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


QUERIES: dict[str, dict[str, str]] = {
    "jobs_list": {"columns": "", "phase": "RUNNING", "strategy": "single", "ordering": "-created"},
    "jobs_logs_lines_retrieve": {"role": "worker", "index": "0"},
    "jobs_logs_levels_retrieve": {"role": "worker", "index": "0"},
    "jobs_logs_raw_retrieve": {"role": "worker", "index": "0"},
    "jobs_logs_search_retrieve": {"role": "worker", "index": "0", "q": "loss"},
    "jobs_outputs_content_retrieve": {"path": "worker-0/a.txt"},
    "jobs_summaries_image_retrieve": {"path": "x"},
    "jobs_scalars_retrieve": {"tag": "loss", "points": "10"},
    "task_log_create": {"role": "worker", "index": "0", "first_line": "0", "lines": "1", "writer": "a"},
    "task_log_retrieve": {"role": "worker", "index": "0"},
    "task_log_end_create": {"role": "worker", "index": "0", "lines": "0"},
    "task_log_gap_create": {"role": "worker", "index": "0", "first_line": "0"},
    "task_log_open_create": {"role": "worker", "index": "0", "line": "0"},
    "task_order_retrieve": {"role": "worker", "index": "0"},
    "task_outputs_retrieve": {"role": "worker", "index": "0"},
    "task_versions_files_retrieve": {"role": "worker", "index": "0"},
    "models_compare_retrieve": {"version": "1"},
    "code_versions_files_content_retrieve": {"path": "a.py"},
    "dataset_versions_files_content_retrieve": {"path": "a.txt"},
    "dataset_versions_preview_retrieve": {"path": "a.txt"},
    "model_versions_files_content_retrieve": {"path": "saved_model.pb"},
    "shares_destroy": {"reason": "over"},
    "audit_export_retrieve": {"as": "csv"},
    "usage_retrieve": {"from": "2026-01-01", "to": "2026-02-01", "group_by": "user"},
    "usage_csv": {"from": "2026-01-01", "to": "2026-02-01", "group_by": "user"},
}
"""What the query must say so that there is something to answer."""
