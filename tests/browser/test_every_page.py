"""What holds for every page, in light and dark, on a desk and on a phone.

A page is loaded once: scheme and width are a style sheet's choice, so they are changed on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Browser, StorageState

from tests.browser.addresses import ADDRESSES, Address
from tests.browser.axe import COLORS, WIDTH, serious_findings
from tests.browser.visitor import DESK, PHONE, Visitor, visitor
from tests.browser.weight import MOST_BYTES, MOST_REQUESTS, weigh
from tests.browser.world import World

NO_PAGES = {
    "healthz", "readyz",
    # Parts of pages, and what a form is sent to.
    "job_rows", "jobs_bulk", "launch_preview", "launch_manifests", "job_stop_page", "job_retry_page", "token_revoke",
    "session_end", "sessions_end_others", "account_address", "namespace_title", "namespace_quota", "member_add",
    "connection_check_page", "connection_delete_page", "connection_copy_page", "connection_copy_cancel_page",
    "member_change", "member_remove", "service_account_role", "service_account_delete", "service_token_rotate",
    "service_token_revoke", "openid_login", "openid_link", "openid_unlink", "openid_callback",
    "task_release_page", "task_stacks_page", "launch_git", "launch_git_state",
    # Addresses that lead on, and files.
    "address_resend", "address_cancel", "tokens_revoke_all", "account_action", "address_confirm", "audit_csv",
    "audit_jsonl", "admin_usage_use_csv",
    "admin_month_csv", "job_use_part", "job_kept_part", "namespace_use_part", "budget_notice_part",
    "namespace_holders_part",
    "client_wheel",
    "sign_in_link", "code_version_page", "dataset_version_page", "model_file_page", "model_archive_page",
    "environment_remove",
    "notification_exception", "notification_chat",
    "sweep_stop_page", "sweep_pause_page", "sweep_resume_page",
    "webhook_rotate", "webhook_test_form", "webhook_delete", "webhook_redeliver",
    "secret_replace", "secret_delete", "bucket_scan_again", "dataset_scan_again", "model_version_stage_page",
    "model_restore_page", "model_version_restore_page",
    "job_output_file_page", "job_outputs_archive_page", "job_summary_image_page",
    "model_try_start", "model_try_stop", "model_try_extend", "model_try_predict",
    "admin_quotas_edit", "admin_quota_schedule_cancel", "admin_preset_move",
    "admin_preset_remove", "admin_queue_act", "admin_hold_release", "namespace_hold",
    "admin_machine_drain", "admin_machine_remove", "admin_machine_accept_key",
    "admin_spark_cluster_check", "admin_spark_cluster_remove",
    "admin_engine_drain", "admin_notice_remove", "notice_hide",
    "admin_dashboard_csv",
    "volume_resize", "volume_delete", "volume_clean_page", "volume_version_remove", "image_delete_page",
    "workbench_start", "session_open", "session_start_form", "session_stop_form", "session_restart_form",
    "session_extend_form", "session_take-over_form", "session_files_delete",
    "admin_user_link", "admin_user_email", "admin_user_action", "invitation_revoke", "removals_old",
    "admin_share_remove", "admin_priority_remove", "admin_reservation_end",
    "former_makers_part", "former_maker_revoke", "former_maker_keep",
    # Looked at in `test_passkeys.py`, at an address where browsers offer them.
    "passkey_add_page", "passkey_remove_page", "passkey_sign_in", "passkey_confirm_page",
    # Looked at in `test_confirming_page.py`, by a user who has no password.
    "confirm_page", "confirm_begin", "password_set_page",
    "template_from_form", "template_delete", "schedule_delete", "schedule_times_part", "schedule_pause_form",
    "schedule_resume_form", "schedule_run_form",
}  # fmt: skip


HEADER_TROUBLES = """() => {
    const parts = [...document.querySelectorAll(".brand, .site-nav a, .site-tools > *")].map((one) => {
        const { left, right, top, bottom } = one.getBoundingClientRect();
        const isWider = one.matches(".find-opener") && one.scrollWidth > one.clientWidth + 1;
        const end = isWider ? left + one.scrollWidth : right;
        return { left, right: end, top, bottom, name: one.innerText || one.className };
    });
    const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
        && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
    const found = parts.flatMap((one, index) => parts.slice(index + 1).filter((other) => meet(one, other))
        .map((other) => `${one.name} covers ${other.name}`));
    const tooWide = document.documentElement.scrollWidth - innerWidth;
    return tooWide > 0 ? [...found, `${tooWide} pixels too wide`] : found;
}"""


def test_every_address_of_the_portal_is_in_the_list_or_is_no_page():
    from portal.urls import urlpatterns

    names = {pattern.name for pattern in urlpatterns if getattr(pattern, "name", None)}
    known = {address.view for address in ADDRESSES}
    assert names - known - NO_PAGES == set()
    assert names >= NO_PAGES


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda one: one.name)
def test_a_page_is_light_and_whole_on_a_desk_and_on_a_phone(
    browser: Browser, full_world: World, ada_state: StorageState, address: Address
):
    state = None if address.is_open else ada_state
    with visitor(browser, full_world.url, DESK, storage_state=state) as one:
        if address.status >= 400:
            one.forgive(f"status of {address.status}")
        weight = weigh(one, address.of(full_world), status=address.status)
        assert weight.requests <= MOST_REQUESTS, weight.addresses
        assert weight.bytes <= MOST_BYTES, weight.addresses
        assert not [url for url in weight.addresses if not url.startswith((full_world.url, "data:"))]
        assert re.fullmatch(r".{2,} · Yardmaster|Yardmaster", one.page.title())
        assert one.page.locator("h1").count() == 1
        assert one.page.evaluate("document.documentElement.lang") == "en"
        _assert_readable_and_fits(one)
        one.darken()
        _assert_readable_and_fits(one, COLORS)
        one.page.set_viewport_size({"width": PHONE.width, "height": PHONE.height})
        _assert_readable_and_fits(one, WIDTH)


def test_the_header_fits_at_every_width_whatever_the_name_of_the_namespace(
    browser: Browser, full_world: World, ada_state: StorageState
):
    rename = "(all) => all.forEach((one) => one.textContent = 'a-long-name'.repeat(4))"
    troubles = {}
    with visitor(browser, full_world.url, PHONE, storage_state=ada_state) as one:
        one.goto("/")
        one.page.eval_on_selector_all(".menu-name", rename)
        for width in (360, 480, 600, 769, 834, 992, 1100, 1200, 1280, 1400, 1440, 1920):
            one.page.set_viewport_size({"width": width, "height": 900})
            troubles[width] = one.page.evaluate(HEADER_TROUBLES)
    assert {width: found for width, found in troubles.items() if found} == {}


def _assert_readable_and_fits(one: Visitor, rules: Sequence[str] | None = None) -> None:
    """Nothing wider than the screen; nothing for axe by these rules (None: all)."""
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the screen"
    assert serious_findings(one.page, rules) == []
