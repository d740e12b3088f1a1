"""The pages of one's own account, and the one behind a one-time sign-in link.

Signing in and out and changing the password are allauth's pages, with templates of ours.
"""

from __future__ import annotations

from uuid import UUID

from allauth.account.internal.flows.login import perform_login, record_authentication
from allauth.account.models import Login
from allauth.core.exceptions import ReauthenticationRequired
from django.contrib import messages
from django.contrib.auth import logout as sign_out
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django.views.generic import RedirectView

from apps.accounts import addresses, browsers, selectors, services
from apps.accounts.attempts import may_guess
from apps.accounts.confirming import is_confirmed
from apps.accounts.forms import SCOPE_WORDS, AddressForm, ProfileForm, TokenForm
from apps.accounts.models import PersonalToken, User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.client.versions import install_command, login_command
from apps.errors import Invalid

TOKENS_AT_ONCE = 50


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button, POST signs in: a program that only fetches the link, such as a mail scanner, does not spend
    it."""
    now = timezone.now()
    if request.method == "POST":
        user = services.sign_in_link_use(token, now)
        if user is not None:
            return _enter_by_link(request, user)
    link = services.sign_in_link_look(token, now)
    response = render(request, "accounts/sign_in_link.html", {"link": link}, status=200 if link else 410)
    # The address is the secret: other sites receive no more than the origin. Not `no-referrer`, with which browsers
    # call the origin of the form `null`, and it would be refused as another site's.
    response.headers["Referrer-Policy"] = "strict-origin"
    return response


def _enter_by_link(request: HttpRequest, user: User) -> HttpResponse:
    """The link stands for the password alone: a second factor is still asked for."""
    if request.user != user:
        sign_out(request)  # what is kept of another user's session, too
    record_authentication(request, user, "link")
    response: HttpResponse = perform_login(request, Login(user=user, redirect_url=reverse("home")))
    return response


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """One's name and the zone of times."""
    user = user_of(request)
    form = ProfileForm(request.POST if request.method == "POST" else None, initial=_profile(user))
    if form.is_bound and form.is_valid():
        services.profile_change(user=user, **form.cleaned_data)
        messages.success(request, "Saved.")
        return redirect("account_page")
    return _account_page(request, profile_form=form)


@login_required
@require_POST
def address(request: HttpRequest) -> HttpResponse:
    """One's e-mail address."""
    user = user_of(request)
    form = AddressForm(user, request.POST)
    if form.is_valid() and "password" in form.fields:
        # Guesses are counted: a session that was left open is no way to a password.
        if not may_guess(user):
            form.add_error("password", "Too many attempts. Wait a few minutes.")
        elif not services.password_confirmed(user, form.cleaned_data["password"]):
            form.add_error("password", "This is not your password.")
    if form.is_valid() and "password" not in form.fields and not is_confirmed(request):
        raise ReauthenticationRequired  # with what was sent, which is used when the user comes back
    if form.is_valid():
        try:
            waits = addresses.address_ask(user=user, email=form.cleaned_data["email"])
        except Invalid as problem:
            show_in_form(form, problem)
        else:
            messages.success(
                request,
                "An e-mail was sent. Open its link to confirm the address." if waits else "The address was changed.",
            )
            return redirect("account_page")
    user.refresh_from_db()
    return _account_page(request, address_form=form)


@login_required
@require_POST
def address_resend(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    try:
        addresses.address_resend(user=user)
    except Invalid as problem:
        messages.error(request, f"{problem.errors[0].message} {problem.errors[0].remedy}".strip())
    else:
        messages.success(request, f"An e-mail was sent to {user.pending_email}.")
    return redirect("account_page")


@login_required
@require_POST
def address_cancel(request: HttpRequest) -> HttpResponse:
    addresses.address_cancel(user=user_of(request))
    messages.success(request, "The address is not changed.")
    return redirect("account_page")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def address_confirm(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button, POST confirms: a mail scanner that fetches the link confirms nothing. Signs no user in."""
    taken = ""
    try:
        user = addresses.address_confirm(token) if request.method == "POST" else addresses.address_waiting(token)
    except Invalid as problem:
        user, taken = None, problem.errors[0].message
    context = {"waiting": user, "taken": taken, "is_done": request.method == "POST" and user is not None}
    response = render(request, "accounts/address_confirm.html", context, status=200 if user else 410)
    response.headers["Referrer-Policy"] = "strict-origin"  # as of the sign-in link
    return response


def _account_page(
    request: HttpRequest, *, profile_form: ProfileForm | None = None, address_form: AddressForm | None = None
) -> HttpResponse:
    user = user_of(request)
    context = {
        "profile_form": profile_form or ProfileForm(initial=_profile(user)),
        "client_commands": f"{install_command()}\n{login_command()}",
        "address_form": address_form or AddressForm(user, initial={"email": user.email}),
    }
    return render(request, "accounts/account.html", context)


def _profile(user: User) -> dict[str, str]:
    return {"first_name": user.first_name, "last_name": user.last_name, "time_zone": user.time_zone}


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """One's tokens. A new one's secret is in the answer to the form and nowhere else: no redirect could carry it."""
    user = user_of(request)
    form = TokenForm(request.POST if request.method == "POST" else None, initial={"reach": "scopes"})
    made: tuple[PersonalToken, str] | None = None
    if form.is_bound and form.is_valid():
        name = form.cleaned_data["name"]
        made = services.token_create(user=user, name=name, scopes=form.chosen_scopes(), expires_in=form.expires_in())
        form = TokenForm(initial={"reach": "scopes"})
    login = login_command()
    context = {
        "form": form,
        "scope_words": SCOPE_WORDS,
        "made": made[0] if made else None,
        "secret": made[1] if made else "",
        "login_command": f"{install_command()}\n{login}",
        "sign_in_command": f"{login} --token {made[1]}" if made else "",
        "page": page_of(selectors.tokens_of(user), request.GET.get("cursor"), TOKENS_AT_ONCE),
        "now": timezone.now(),
    }
    return render(request, "accounts/tokens.html", context)


@login_required
@require_POST
def token_revoke(request: HttpRequest, token_id: UUID) -> HttpResponse:
    user = user_of(request)
    token = selectors.token_for(user, token_id)
    services.token_revoke(token=token, actor=user)
    messages.success(request, f"Revoked {token.name}. It can no longer be used.")
    return redirect("tokens_page")


@login_required
@require_POST
def tokens_revoke_all(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    count = services.tokens_revoke_all(user=user, actor=user)
    messages.success(request, f"Revoked {count} token{'s' if count != 1 else ''}.")
    return redirect("tokens_page")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD"])
def sessions(request: HttpRequest) -> HttpResponse:
    """Where one is signed in."""
    found = browsers.browsers_of(user_of(request), request.session.session_key, timezone.now())
    return render(request, "accounts/sessions.html", {"browsers": found})


@login_required
@require_POST
def session_end(request: HttpRequest, browser_id: UUID) -> HttpResponse:
    browsers.browser_end(user=user_of(request), browser_id=browser_id)
    messages.success(request, "Signed out of that browser.")
    return redirect("sessions_page")


@login_required
@require_POST
def sessions_end_others(request: HttpRequest) -> HttpResponse:
    browsers.browsers_end_others(request, user_of(request))
    messages.success(request, "Signed out of all other browsers.")
    return redirect("sessions_page")


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/<str:token>/", sign_in_link, name="sign_in_link"),
    path("account/", account, name="account_page"),
    path("account/address/", address, name="account_address"),
    path("account/address/resend/", address_resend, name="address_resend"),
    path("account/address/cancel/", address_cancel, name="address_cancel"),
    path("accounts/address/<str:token>/", address_confirm, name="address_confirm"),
    path("account/tokens/", tokens, name="tokens_page"),
    path("account/tokens/<uuid:token_id>/revoke/", token_revoke, name="token_revoke"),
    path("account/tokens/revoke-all/", tokens_revoke_all, name="tokens_revoke_all"),
    path("account/sessions/", sessions, name="sessions_page"),
    path("account/sessions/end-others/", sessions_end_others, name="sessions_end_others"),
    path("account/sessions/<uuid:browser_id>/end/", session_end, name="session_end"),
    # allauth's page of addresses knows a list of them and wants each confirmed; here a person has one.
    path("accounts/email/", RedirectView.as_view(pattern_name="account_page")),
]
