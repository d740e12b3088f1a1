"""Every address of the portal. Each app owns its own; all of the API lies under `/api/v1/`."""

from django.urls import URLPattern, URLResolver, include, path

from apps.accounting import admin_pages as use_dashboards
from apps.accounting import dashboard_pages
from apps.accounting import pages as accounting
from apps.accounts import confirm_pages, device_pages, openid_pages, passkey_pages
from apps.accounts import pages as accounts
from apps.administration import (
    audit_pages,
    connection_copy_pages,
    connection_pages,
    engine_pages,
    former_maker_pages,
    hold_pages,
    machine_pages,
    namespace_pages,
    namespace_parts,
    overview_pages,
    preemption_pages,
    preset_pages,
    priority_pages,
    queue_pages,
    quota_pages,
    quota_plan_pages,
    reservation_pages,
    retention_pages,
    secret_pages,
    service_account_pages,
    settings_pages,
    share_pages,
    spark_pages,
    volume_pages,
)
from apps.api.outside import unknown_address
from apps.api.readiness import healthz, readyz
from apps.client import pages as client
from apps.code import pages as code
from apps.datasets import bucket_pages
from apps.datasets import pages as datasets
from apps.images import pages as images
from apps.jobs import pages as jobs
from apps.logs import pages as logs
from apps.notifications import broadcast_pages, unsubscribe_pages
from apps.notifications import pages as notifications
from apps.people import invitation_pages, removal_pages, team_pages, user_pages
from apps.registry import change_pages as registry
from apps.removals import pages as removals
from apps.schedules import schedule_pages, template_pages
from apps.serving import batch_pages
from apps.serving import pages as serving
from apps.sweeps import pages as sweeps
from apps.webhooks import pages as webhooks
from apps.workbench import pages as workbench
from portal import find, home

API = (
    "api.views",
    "accounts.views",
    "accounts.device_views",
    "administration.namespace_views",
    "administration.secret_views",
    "accounting.views",
    "accounting.budget_views",
    "accounting.month_views",
    "accounting.dashboard_views",
    "administration.service_account_views",
    "administration.audit_views",
    "administration.share_views",
    "administration.preemption_views",
    "administration.reservation_views",
    "administration.retention_views",
    "administration.quota_views",
    "administration.queue_views",
    "administration.engine_views",
    "administration.machine_views",
    "administration.spark_views",
    "administration.settings_views",
    "uploads.views",
    "administration.connection_views",
    "administration.connection_copy_views",
    "datasets.bucket_views",
    "datasets.making_views",
    "datasets.views",
    "code.views",
    "code.import_views",
    "jobs.api.job_views",
    "jobs.api.detail_views",
    "jobs.api.output_views",
    "jobs.api.kept_views",
    "jobs.api.summary_views",
    "jobs.api.shell_views",
    "jobs.api.portable_views",
    "jobs.api.prepare_views",
    "jobs.api.preset_views",
    "jobs.api.volume_views",
    "jobs.task_api.views",
    "jobs.task_api.package_views",
    "logs.task_views",
    "logs.views",
    "environments.views",
    "images.views",
    "registry.views",
    "removals.views",
    "people.views",
    "serving.views",
    "serving.batch_views",
    "notifications.broadcast_views",
    "sweeps.views",
    "webhooks.views",
    "notifications.views",
    "schedules.views",
    "workbench.views",
    "workbench.task_views",
)

PAGES = (
    accounts,
    device_pages,
    openid_pages,
    confirm_pages,
    passkey_pages,
    namespace_pages,
    namespace_parts,
    secret_pages,
    connection_copy_pages,
    connection_pages,
    service_account_pages,
    former_maker_pages,
    volume_pages,
    audit_pages,
    overview_pages,
    share_pages,
    preemption_pages,
    reservation_pages,
    retention_pages,
    preset_pages,
    priority_pages,
    accounting,
    use_dashboards,
    dashboard_pages,
    quota_pages,
    quota_plan_pages,
    queue_pages,
    hold_pages,
    engine_pages,
    machine_pages,
    spark_pages,
    settings_pages,
    images,
    notifications,
    broadcast_pages,
    unsubscribe_pages,
    webhooks,
    sweeps,
    template_pages,
    schedule_pages,
    jobs,
    logs,
    bucket_pages,
    datasets,
    code,
    registry,
    serving,
    batch_pages,
    workbench,
    removals,
    user_pages,
    team_pages,
    removal_pages,
    invitation_pages,
    client,
)
"""Each has its own addresses; below are those that belong to none."""

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include([path("", include(f"apps.{name}")) for name in API])),
    path("api/<path:rest>", unknown_address),
    path("storage/", include("apps.uploads.delivery")),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("", home.home, name="home"),
    path("find/", find.find, name="find"),
    *[pattern for app in PAGES for pattern in app.pages_urlpatterns],
    path("accounts/", include("allauth.urls")),
]
handler400 = "apps.api.outside.bad_request"
handler403 = "apps.api.outside.permission_denied"
handler404 = "apps.api.outside.not_found"
handler500 = "apps.api.outside.server_error"
