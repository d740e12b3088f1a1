"""Every page of the portal: its address, and who may see it.

A page that is missing here is not looked at by the tests of all pages: `test_every_page.py` compares this list with the
portal's addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tests.browser.world import World

UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


@dataclass(frozen=True)
class Address:
    """A page: a name for files and test ids, its path with `{…}` for ids of the world, the name of its view."""

    name: str
    path: str
    view: str
    is_open: bool = False
    status: int = 200
    is_list: bool = False

    def of(self, world: World) -> str:
        return self.path.format(**world.ids)


ADDRESSES = (
    Address("sign-in", "/accounts/login/", "account_login", is_open=True),
    Address("password-forgotten", "/accounts/password/reset/", "account_reset_password", is_open=True),
    Address("client", "/client/", "client_page", is_open=True),
    Address("home", "/", "home"),
    Address("find", "/find/?q=digits", "find"),
    Address("jobs", "/jobs/", "jobs_page", is_list=True),
    Address("jobs-filtered", "/jobs/?phase=FAILED&search=once", "jobs_page", is_list=True),
    Address("jobs-archived", "/jobs/?archived=yes", "jobs_page", is_list=True),
    Address("job-edit", "/jobs/{trained}/edit/", "job_edit_page"),
    Address("jobs-none", "/jobs/?search=nothing-is-called-so", "jobs_page", is_list=True),
    Address("compare", "/jobs/compare/?job={trained}&job={running}&job={failed}", "job_compare_page"),
    Address("launch", "/jobs/launch/", "launch_page"),
    Address("templates", "/jobs/templates/", "templates_page", is_list=True),
    Address("template", "/jobs/templates/{template}/", "template_page"),
    Address("template-new", "/jobs/templates/new/?job={trained}", "template_new"),
    Address("template-edit", "/jobs/templates/{template}/edit/", "template_edit"),
    Address("template-form", "/jobs/templates/{template}/form/", "template_in_form"),
    Address("schedules", "/jobs/schedules/", "schedules_page", is_list=True),
    Address("schedule", "/jobs/schedules/{schedule}/", "schedule_page"),
    Address("schedule-new", "/jobs/schedules/new/?template={template}", "schedule_new"),
    Address("schedule-choose", "/jobs/schedules/new/", "schedule_new"),
    Address("schedule-edit", "/jobs/schedules/{schedule}/edit/", "schedule_edit"),
    Address("engines", "/engines/", "engines_page"),
    Address("launch-clone", "/jobs/launch/?from={trained}", "launch_page"),
    Address("job-running", "/jobs/{running}/", "job_page"),
    Address("job-waiting", "/jobs/{waiting}/", "job_page"),
    Address("job-never", "/jobs/{never}/", "job_page"),
    Address("jobs-never", "/jobs/?queue_state=never_fits", "jobs_page", is_list=True),
    Address("job-failed", "/jobs/{failed}/", "job_page"),
    Address("job-succeeded", "/jobs/{trained}/", "job_page"),
    Address("job-delete", "/jobs/{failed}/delete/", "job_delete_page"),
    Address("job-manifests", "/jobs/{trained}/manifests/", "job_manifests_page"),
    Address("job-outputs", "/jobs/{trained}/outputs/", "job_outputs_page"),
    Address(
        "job-notebook",
        "/jobs/{executed}/outputs/notebook/?path=notebooks/book.ipynb",
        "job_notebook_page",
    ),
    Address("job-executed", "/jobs/{executed}/", "job_page"),
    Address("job-summaries", "/jobs/{trained}/summaries/", "job_summaries_page"),
    Address("terminal", "/jobs/{trained}/tasks/worker-0/terminal/", "terminal_page"),
    Address("log", "/jobs/{logged}/logs/", "log_page"),
    Address("log-merged", "/jobs/{trained}/logs/", "log_page"),
    Address("datasets", "/datasets/", "datasets_page", is_list=True),
    Address("dataset-records", "/datasets/{dataset}/?path=train-00000-of-00004.tfrecord", "dataset_page"),
    Address("dataset-picture", "/datasets/{dataset}/?path=sample.png", "dataset_page"),
    Address("dataset-table", "/datasets/{dataset}/?path=classes.csv", "dataset_page"),
    Address("dataset-text", "/datasets/{dataset}/?path=README.md", "dataset_page"),
    Address("dataset-folders", "/datasets/{dataset-folders}/?folder=train", "dataset_page"),
    Address("dataset-changes", "/datasets/{dataset}/changes/", "dataset_changes_page"),
    Address("dataset-prepare", "/datasets/versions/{dataset-version}/prepare/", "dataset_prepare_page"),
    Address("dataset-volume", "/datasets/versions/{dataset-version}/volume/", "dataset_volume_page"),
    Address("dataset-check", "/datasets/versions/{dataset-version}/check/", "dataset_check_page"),
    Address("dataset-edit", "/datasets/{dataset}/edit/", "dataset_edit_page"),
    Address("dataset-delete", "/datasets/{dataset}/delete/", "dataset_delete_page"),
    Address("dataset-upload", "/datasets/upload/", "dataset_upload_page"),
    Address("dataset-version-upload", "/datasets/{dataset}/upload/", "dataset_upload_page"),
    Address("buckets", "/datasets/buckets/", "buckets_page", is_list=True),
    Address("code-list", "/code/", "code_list_page", is_list=True),
    Address("code", "/code/{code}/?path=between_graph.py", "code_page"),
    Address("code-compare", "/code/{code}/compare/", "code_compare_page"),
    Address("code-edit", "/code/{code}/edit/", "code_edit_page"),
    Address("code-delete", "/code/{code}/delete/", "code_delete_page"),
    Address("code-upload", "/code/upload/", "code_upload_page"),
    Address("code-version-upload", "/code/{code}/upload/", "code_upload_page"),
    Address("models", "/models/", "models_page", is_list=True),
    Address("model", "/models/{model}/", "model_page"),
    Address("model-compare", "/models/{model}/compare/?version=1&version=2", "model_compare_page"),
    Address("model-edit", "/models/{model}/edit/", "model_edit_page"),
    Address("model-delete", "/models/{model}/delete/", "model_delete_page"),
    Address("model-version", "/model-versions/{model-version}/", "model_version_page"),
    Address("model-try", "/model-versions/{model-version}/try/", "model_try_page"),
    Address("model-batch", "/model-versions/{model-version}/batch/", "model_batch_page"),
    Address("model-version-delete", "/model-versions/{model-version}/delete/", "model_version_delete_page"),
    Address("workbench", "/workbench/", "workbench_page", is_list=True),
    Address("session-board", "/sessions/{board}/", "session_page"),
    Address("session-jupyter", "/sessions/{jupyter}/", "session_page"),
    Address("account", "/account/", "account_page"),
    Address("device", "/device/", "device_page"),
    Address("tokens", "/account/tokens/", "tokens_page", is_list=True),
    Address("sessions", "/account/sessions/", "sessions_page", is_list=True),
    Address("notifications", "/account/notifications/", "notifications_page"),
    Address("password-change", "/accounts/password/change/", "account_change_password"),
    Address("sign-out", "/accounts/logout/", "account_logout"),
    Address("namespaces", "/namespaces/", "namespaces_page", is_list=True),
    Address("namespace", "/namespaces/{team}/", "namespace_page"),
    Address("secrets", "/namespaces/{team}/secrets/", "secrets_page", is_list=True),
    Address("linked", "/account/linked/", "linked_page"),
    Address("service-accounts", "/namespaces/{team}/service-accounts/", "service_accounts_page", is_list=True),
    Address("service-account", "/namespaces/{team}/service-accounts/{service}/", "service_account_page"),
    Address("webhooks", "/namespaces/{team}/webhooks/", "webhooks_page", is_list=True),
    Address("webhook", "/namespaces/{team}/webhooks/{webhook}/", "webhook_page"),
    Address("environments", "/namespaces/{team}/environments/", "environments_page", is_list=True),
    Address("volumes", "/namespaces/{team}/volumes/", "volumes_page"),
    Address("images", "/images/", "images_page", is_list=True),
    Address("image", "/images/tensorflow-2.19/", "image_page"),
    Address("audit", "/audit/", "audit_page", is_list=True),
    Address("audit-none", "/audit/?person=nobody-is-called-so", "audit_page", is_list=True),
    Address("admin", "/admin/", "admin_page"),
    Address("admin-users", "/admin/users/", "admin_users_page"),
    Address("admin-users-none", "/admin/users/?search=nothing-is-called-so", "admin_users_page"),
    Address("admin-user-new", "/admin/users/new/", "admin_user_new_page"),
    Address("admin-user", "/admin/users/{bob}/", "admin_user_page"),
    Address("admin-user-remove", "/admin/users/{bob}/remove/", "admin_user_remove_page"),
    Address("admin-teams", "/admin/teams/", "admin_teams_page"),
    Address("admin-team-new", "/admin/teams/new/", "admin_team_new_page"),
    Address("admin-team-remove", "/admin/teams/{team}/remove/", "admin_team_remove_page"),
    Address("members-add", "/namespaces/{team}/members/add-many/", "members_add_page"),
    Address("admin-invitations", "/admin/invitations/", "admin_invitations_page"),
    Address("team-invitations", "/namespaces/{team}/invitations/", "team_invitations_page"),
    Address("invitation", "/invitation/{invitation}/", "invitation_page", is_open=True),
    Address("invitation-over", "/invitation/unknown/", "invitation_page", is_open=True, status=410),
    Address("removals", "/admin/removals/", "removals_page"),
    Address("removal", "/admin/removals/{removal}/", "removal_page"),
    Address("admin-shares", "/admin/shares/", "admin_shares_page"),
    Address("admin-share", "/admin/shares/{share}/", "admin_share_page"),
    Address("admin-priorities", "/admin/priority-classes/", "admin_priorities_page"),
    Address("admin-priority", "/admin/priority-classes/urgent/", "admin_priority_page"),
    Address("usage", "/usage/", "usage_page"),
    Address("admin-usage", "/admin/usage/", "admin_usage_page"),
    Address("admin-usage-wrong", "/admin/usage/?since=2020-01-01", "admin_usage_page", status=400),
    Address("admin-month", f"/admin/usage/{datetime.now(UTC):%Y-%m}/", "admin_month_page"),
    Address("admin-budgets", "/admin/budgets/", "admin_budgets_page", is_list=True),
    Address("admin-budget", "/admin/budgets/{team}/", "admin_budget_page"),
    Address("admin-queue", "/admin/queue/", "admin_queue_page"),
    Address("admin-quotas", "/admin/quotas/", "admin_quotas_page", is_list=True),
    Address("admin-quotas-none", "/admin/quotas/?search=nothing-is-called-so", "admin_quotas_page", is_list=True),
    Address("removals", "/removals/", "removals_page"),
    Address("not-found", f"/jobs/{UNKNOWN}/", "job_page", status=404),
)
"""Maintenance, 403 and 500 have no address: `test_trouble.py` brings them about."""
