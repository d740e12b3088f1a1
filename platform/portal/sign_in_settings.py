"""How people and programs sign in: a second factor, OpenID providers, accounts of programs; from the environment.

Not here: passwords, limits of attempts and the lifetime of tokens (`settings`).
"""

from __future__ import annotations

from portal import env
from portal.openid_settings import as_allauth, providers

YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE = env.number("YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE", 20, least=0)
"""How many accounts of programs the managers of a namespace may make."""

# --- Second factor -----------------------------------------------------------------------------------------------
YARDMASTER_REQUIRE_SECOND_FACTOR = env.one_of(
    "YARDMASTER_REQUIRE_SECOND_FACTOR", ("none", "administrators", "all"), "none"
)
"""Of whom a second factor is required: who has none can do nothing but set it up."""
MFA_ADAPTER = "portal.second_factor_keys.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "preferred"  # after a password; without one it is required
MFA_RATE_LIMITS: dict[str, str] = {"webauthn_login": ""}  # `apps.accounts.attempts` counts
MFA_FORMS = {
    "authenticate": "apps.accounts.second_factor.SignInCodeForm",
    "reauthenticate": "apps.accounts.second_factor.ConfirmCodeForm",
    "authenticate_webauthn": "apps.accounts.passkeys.PasskeySecondForm",
    "login_webauthn": "apps.accounts.passkeys.PasskeySignInForm",
    "reauthenticate_webauthn": "apps.accounts.passkeys.PasskeyConfirmForm",
    "add_webauthn": "apps.accounts.passkeys.PasskeyAddForm",
    "edit_webauthn": "apps.accounts.passkeys.PasskeyNameForm",
}
MFA_TOTP_ISSUER = "Yardmaster"
MFA_TOTP_TOLERANCE = 1  # a clock may be half a minute off
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # `apps.accounts.addresses` confirms them, of which allauth knows nothing

# --- OpenID providers --------------------------------------------------------------------------------------------
YARDMASTER_OIDC = providers(env.text("YARDMASTER_OIDC_FILE"))
"""By their id."""
SOCIALACCOUNT_PROVIDERS = as_allauth(YARDMASTER_OIDC)
SOCIALACCOUNT_ADAPTER = "apps.accounts.openid.ProviderUsers"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
