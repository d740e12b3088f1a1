"""What is counted and recorded of sign-ins that are refused, and sockets of users who lack a required second factor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.models import SocialAccount, SocialLogin
from asgiref.sync import sync_to_async
from django.conf import settings as portal_settings
from django.contrib.auth.models import AnonymousUser
from django.test import Client, RequestFactory

from apps.accounts.models import User
from apps.accounts.openid import ProviderUsers
from apps.accounts.services import token_create
from apps.audit.models import AuditEvent
from portal.asgi import application
from tests.integration.logs.socket_client import SocketClient

COMPANY = SimpleNamespace(
    id="company", title="Company", groups_claim="groups", allowed_groups=("staff",), allowed_domains=(),
    create_users=False, trust_email=False, teams={}, administrators=(),
)  # fmt: skip


def come(rf: RequestFactory, groups: list[str]) -> None:
    request = rf.get("/accounts/oidc/company/login/callback/", headers={"user-agent": "Firefox"})
    request.user, request.session = AnonymousUser(), {}
    facts = {"sub": "7", "groups": groups, "email": "ada@example.org", "email_verified": True}
    account = SocialAccount(provider="company", uid="7", extra_data={"userinfo": facts})
    login = SocialLogin(account=account)
    login.user, login.state = User(), {}
    with pytest.raises(ImmediateHttpResponse):
        ProviderUsers().pre_social_login(request, login)


@pytest.mark.django_db
def test_a_refused_sign_in_by_a_provider_is_recorded_once_an_hour(rf, settings, ada):
    settings.YARDMASTER_OIDC = {"company": COMPANY}
    for _ in range(3):
        come(rf, ["guests"])
    come(rf, ["staff"])
    rows = AuditEvent.objects.filter(action="openid.refuse").order_by("pk")
    assert [(one.subject, one.count) for one in rows] == [("provider:company", 3), ("provider:company", 1)]
    assert "do not allow you to sign in" in rows[0].facts["reason"]
    assert "already has your address" in rows[1].facts["reason"], "also where what was begun is rolled back"


@pytest.mark.django_db
def test_ways_to_a_provider_are_counted_by_address(client, settings):
    settings.YARDMASTER_SIGN_IN_LIMITS = {**settings.YARDMASTER_SIGN_IN_LIMITS, "ADDRESS": 2}
    statuses = [client.get("/accounts/oidc/none/login/").status_code for _ in range(4)]
    assert statuses == [404, 404, 429, 429]


async def opens(*more: tuple[bytes, bytes]) -> bool:
    origin = (b"origin", portal_settings.PUBLIC_URL.encode())
    socket = SocketClient(application, "/ws/jobs/", [origin, *more])
    is_open = await socket.connect()
    if is_open:
        assert "ready" in (await socket.receive_output())["text"]
        await socket.disconnect()
    return is_open


@pytest.mark.django_db(transaction=True)
async def test_a_socket_needs_the_required_second_factor(transactional_db, settings):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    ada = await User.objects.acreate_user("ada")
    client = Client()
    await client.aforce_login(ada)
    name = settings.SESSION_COOKIE_NAME
    cookie = (b"cookie", f"{name}={client.cookies[name].value}".encode())
    assert await opens(cookie)
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "all"
    assert not await opens(cookie)
    _, secret = await sync_to_async(token_create)(user=ada, name="x", scopes=["read"], expires_in=None)
    assert await opens((b"authorization", f"Bearer {secret}".encode())), "programs have tokens of their own"
