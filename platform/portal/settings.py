"""The portal's settings. Environments differ by variables (`YARDMASTER_…`), not by files; every reader fails at start.

Each group serves one subject. Not here: what a namespace may use (that is data, in quotas).
"""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from portal import (
    code_from_git,
    data_connections,
    dataset_downloads,
    env,
    object_stores,
    outgoing,
    package_index,
    schedule_settings,
    sweep_settings,
)
from portal.accounting_settings import accounting
from portal.engine_settings import engines
from portal.log_settings import configure_structlog, log_settings
from portal.rates import rates
from portal.schema_settings import SPECTACULAR_SETTINGS as SPECTACULAR_SETTINGS
from portal.sign_in_settings import *  # noqa: F403  # each name there is a setting
from portal.sign_up_settings import sign_up_mode
from portal.timing import serving, timing, workbench
from yardmaster.job.spec_limits import SpecLimits
from yardmaster.quantity import parse_cpu, parse_memory
from yardmaster.storage.s3_client import Endpoint

BASE_DIR = Path(__file__).resolve().parents[2]

# Where the embedded installation keeps everything: database, objects, logs, runs, sockets.
HOME = Path(env.text("YARDMASTER_HOME", str(BASE_DIR / ".yardmaster"))).resolve()

DEBUG = env.flag("YARDMASTER_DEBUG")
SECRET_KEY = env.secret("YARDMASTER_SECRET_KEY", HOME / "secret.key")

# --- Address -----------------------------------------------------------------------------------------------------
PUBLIC_URL = env.text("YARDMASTER_PUBLIC_URL", "http://127.0.0.1:8080").rstrip("/")
"""How people reach the portal."""
TASK_URL = env.text("YARDMASTER_TASK_URL", PUBLIC_URL).rstrip("/")
"""How tasks reach the portal, where that differs."""
ALLOWED_HOSTS = env.words("YARDMASTER_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
# `__Host-`: browsers take such a cookie over TLS alone, and from no other host, not even one of the same domain.
_COOKIES = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME = f"{_COOKIES}yardmaster_session"
CSRF_COOKIE_NAME = f"{_COOKIES}yardmaster_csrf"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("YARDMASTER_BEHIND_PROXY") else None
YARDMASTER_WORKBENCH_ORIGINS = env.workbench("YARDMASTER_WORKBENCH_URL", PUBLIC_URL)
"""How browsers reach the sessions of the workbench: never at the portal's own origin."""
YARDMASTER_WORKBENCH_SHARED_ORIGIN = env.flag("YARDMASTER_WORKBENCH_SHARED_ORIGIN")
"""Whether Jupyters may run where sessions share one origin."""
YARDMASTER_WORKBENCH_CONNECTIONS = env.number("YARDMASTER_WORKBENCH_CONNECTIONS", 300, least=1)
"""Requests and WebSockets to sessions that one user may have under way in one web process."""
YARDMASTER_RATES = rates()
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 << 20  # 20,000 files with their checksums; most addresses take less (`body_limit`)
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000  # the launch form with 500 variables and 100 inputs, of two fields each
YARDMASTER_BODY_LIMIT = env.number("YARDMASTER_BODY_LIMIT", 256 << 10, least=64 << 10)
YARDMASTER_BODY_PATIENCE = env.number("YARDMASTER_BODY_PATIENCE", 30, least=1)
YARDMASTER_BODIES_TOTAL = env.number("YARDMASTER_BODIES_TOTAL", 256 << 20, least=1 << 20)
"""Bytes of a request's body, seconds that it may lag behind, and bytes of all bodies in one web process's memory."""
YARDMASTER_HEAD_PATIENCE = env.number("YARDMASTER_HEAD_PATIENCE", 20, least=1)
YARDMASTER_CONNECTIONS = env.number("YARDMASTER_CONNECTIONS", 20_000, least=10)
YARDMASTER_CONNECTIONS_PER_ADDRESS = env.number("YARDMASTER_CONNECTIONS_PER_ADDRESS", 2_000, least=5)
CSRF_FAILURE_VIEW = "apps.api.outside.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- Django ------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "knox",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "simple_history",
    "django_structlog",
    "apps.dispatch",
    "apps.api",
    "apps.accounts",
    "apps.namespaces",
    "apps.audit",
    "apps.secrets",
    "apps.buckets",
    "apps.connections",
    "apps.spark",
    "apps.uploads",
    "apps.environments",
    "apps.images",
    "apps.datasets",
    "apps.code",
    "apps.jobs",
    "apps.webhooks",
    "apps.schedules",
    "apps.notifications",
    "apps.logs",
    "apps.registry",
    "apps.hosting",
    "apps.serving",
    "apps.workbench",
    "apps.accounting",
    "apps.sweeps",
    "apps.administration",
    "apps.removals",
    "apps.people",
    "portal",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "portal.content_policy.ContentPolicy",
    "apps.api.outside.RefuseNulCharacters",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.audit.whence.NoteWhence",
    "apps.api.audience.NoteAudience",
    "apps.client.versions.NegotiateVersions",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.accounts.browsers.NoteBrowsers",
    "apps.accounts.attempts.CountAttempts",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.accounts.second_factor.RequireSecondFactor",
    "apps.notifications.client_notice.TellClients",
    "apps.api.outside.ProblemsOfPages",
    "portal.request_log.RequestLog",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
WSGI_APPLICATION = "portal.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.accounts.sign_up.sign_up_state",
                "apps.namespaces.context.namespaces",
            ]
        },
    }
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Database ----------------------------------------------------------------------------------------------------
DATABASES = {"default": env.database("YARDMASTER_DATABASE_URL", HOME / "portal.sqlite3")}

# --- Messages: Celery and Channels -------------------------------------------------------------------------------
REDIS_URL = env.text("YARDMASTER_REDIS_URL", f"unix://{env.socket_folder(HOME) / 'valkey.sock'}")
CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CHANNEL_LAYERS = {
    "default": {
        # The plain RedisChannelLayer drops messages past 100 queued ones without a word.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "yardmaster"},
    }
}

# --- Cache -------------------------------------------------------------------------------------------------------
# Nothing that must last, and no count of guesses: those are in tables that no client can overflow
# (`apps.api.allowances`). In the web process's own memory, so that it works while the broker does not.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Which sessions were noted within the minute.
    "browsers": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "browsers",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}

# --- Accounts ----------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
# One backend only: a second would hash a wrong password twice for a known name and betray which names exist.
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL, LOGIN_REDIRECT_URL = "account_login", "/"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if SECURE_PROXY_SSL_HEADER else 0
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "apps.accounts.sign_up.AccountAdapter"
# Counted by `apps.accounts.attempts`; a count by name alone would lock out the owner of the account.
ACCOUNT_RATE_LIMITS = {"login": "", "login_failed": ""}
YARDMASTER_SIGN_IN_LIMITS = {
    "ADDRESS": env.number("YARDMASTER_SIGN_IN_PER_ADDRESS", 60, least=2),
    "PAIR": env.number("YARDMASTER_SIGN_IN_PER_PAIR", 10, least=2),
    "ACCOUNT": env.number("YARDMASTER_SIGN_IN_PER_ACCOUNT", 60, least=2),
    "SUCCESSES": env.number("YARDMASTER_SIGN_INS_MADE", 120, least=2),
    "MAILS": env.number("YARDMASTER_RESET_MAILS", 10, least=1),
    "CODES": env.number("YARDMASTER_SECOND_FACTOR_CODES", 100, least=10),
}
"""Attempts per minute from one address, in five minutes per address and account and per account; mails in an hour."""
YARDMASTER_DEVICE_COOKIE = f"{_COOKIES}yardmaster_device"
ACCOUNT_FORMS = {
    "signup": "apps.accounts.sign_up.SignUpForm",
    "change_password": "apps.accounts.forms.PasswordChangeForm",
    "reset_password_from_key": "apps.accounts.forms.PasswordResetForm",
}
YARDMASTER_TOKEN_LIFETIME = timedelta(seconds=env.number("YARDMASTER_TOKEN_LIFETIME", 90 * 86_400, least=60))
YARDMASTER_TOKEN_LONGEST_LIFETIME = timedelta(seconds=env.number("YARDMASTER_TOKEN_LONGEST_LIFETIME", 365 * 86_400))
"""How long a personal token lasts that asks for nothing else, and at most. Zero there: for any time, or for ever."""
YARDMASTER_TOKENS_PER_USER = env.number("YARDMASTER_TOKENS_PER_USER", 500, least=1)
YARDMASTER_SESSIONS_PER_USER = env.number("YARDMASTER_SESSIONS_PER_USER", 100, least=1)
YARDMASTER_PASSWORDS_AT_ONCE = env.number("YARDMASTER_PASSWORDS_AT_ONCE", 4, least=1)
YARDMASTER_SIGN_UP = sign_up_mode()
"""Who may make an account: anyone (`open`), those with an `invitation`, or administrators alone (`closed`)."""
YARDMASTER_OPEN_SIGN_UP = YARDMASTER_SIGN_UP == "open"
YARDMASTER_AUDIT_KEPT = timedelta(days=env.number("YARDMASTER_AUDIT_DAYS", 365))  # zero: for ever
YARDMASTER_AUDIT_FAILURES_PER_HOUR = env.number("YARDMASTER_AUDIT_FAILURES_PER_HOUR", 500, least=1)
"""Failed sign-ins that get a row of their own; the others of the hour are counted in one."""
YARDMASTER_AUDIT_EXPORT_ROWS = env.number("YARDMASTER_AUDIT_EXPORT_ROWS", 100_000, least=1)
YARDMASTER_DEFAULT_QUOTA = {
    # What a new namespace may hold at once; unset: unlimited, so that what the engine has is the bound.
    "cpu": env.limit("YARDMASTER_DEFAULT_QUOTA_CPU", parse_cpu),
    "memory": env.limit("YARDMASTER_DEFAULT_QUOTA_MEMORY", parse_memory),
    "gpus": env.limit("YARDMASTER_DEFAULT_QUOTA_GPUS", int),
    "storage": env.limit("YARDMASTER_DEFAULT_QUOTA_STORAGE", parse_memory),
    "files": env.limit("YARDMASTER_DEFAULT_QUOTA_FILES", int),
    "running_jobs": env.limit("YARDMASTER_DEFAULT_QUOTA_RUNNING_JOBS", int),
}

YARDMASTER_PRICES, YARDMASTER_DEFAULT_BUDGET, YARDMASTER_BUDGET_WARNINGS, YARDMASTER_IDLE_SERVERS_AFTER = accounting()

# --- Mail --------------------------------------------------------------------------------------------------------
_MAIL = env.mail_server("YARDMASTER_EMAIL_URL")
EMAIL_BACKEND = _MAIL.backend
EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER = _MAIL.host, _MAIL.port, _MAIL.user
EMAIL_HOST_PASSWORD = env.text("YARDMASTER_EMAIL_PASSWORD", _MAIL.password)
EMAIL_USE_TLS, EMAIL_USE_SSL = _MAIL.use_starttls, _MAIL.use_tls
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.text("YARDMASTER_EMAIL_FROM", f"Yardmaster <yardmaster@{urlsplit(PUBLIC_URL).hostname}>")
YARDMASTER_SENDS_MAIL = _MAIL.is_real
"""Whether mail is really sent, so that pages promise none where it does not."""

# --- API ---------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.accounts.authentication.PersonalTokenAuthentication",
        "apps.accounts.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["apps.api.permissions.ScopedAndSignedIn"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.api.parsers.JSONParser"],
    "DEFAULT_METADATA_CLASS": None,  # the OpenAPI document says more than OPTIONS could
    "DEFAULT_PAGINATION_CLASS": "apps.api.paging.NewestFirst",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "apps.api.schema.Schema",
    "EXCEPTION_HANDLER": "apps.api.problems.answer",
    "NUM_PROXIES": 1 if SECURE_PROXY_SSL_HEADER else 0,  # else a caller could choose the address it is counted by
    "DATETIME_FORMAT": "%Y-%m-%dT%H:%M:%S.%fZ",
    "PAGE_SIZE": 50,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=365), "TOKEN_MODEL": "accounts.PersonalToken", "TOKEN_PREFIX": "ym_"}
KNOX_TOKEN_MODEL = "accounts.PersonalToken"
# knox's migrations make the table of its own token model, which ours replaces. It would stay empty and refer to users.
MIGRATION_MODULES = {"knox": None}

# --- Objects, logs, engines --------------------------------------------------------------------------------------
YARDMASTER_STORES = object_stores.stores(HOME, PUBLIC_URL, TASK_URL, SECRET_KEY)
YARDMASTER_STORAGE = YARDMASTER_STORES[object_stores.name_of_used()]
YARDMASTER_IGNITE = object_stores.ignite(PUBLIC_URL, TASK_URL, SECRET_KEY)
"""The store for checkpoints and outputs of jobs that ask for it; empty: there is none."""
YARDMASTER_LOGS_ROOT = Path(env.text("YARDMASTER_LOGS_ROOT", str(HOME / "logs")))
YARDMASTER_LOG_LIMIT = env.size("YARDMASTER_LOG_LIMIT", "8Gi", least=1 << 20)
"""The most bytes of one attempt's log. Past it lines are dropped and counted."""
YARDMASTER_LOG_LIMIT_NAMESPACE = env.size("YARDMASTER_LOG_LIMIT_NAMESPACE", "256Gi", least=1 << 20)
"""The same of all jobs of a namespace; the quota of storage counts them too."""
YARDMASTER_LOG_WAIT = env.number("YARDMASTER_LOG_WAIT", 60, least=1)
"""Seconds that a portal must not have answered a task before lines which its spool has no room for are dropped."""
YARDMASTER_BUCKET_ENDPOINTS = [
    Endpoint(one).origin.lower() for one in env.words("YARDMASTER_BUCKET_ENDPOINTS", object_stores.S3_ENDPOINT)
]
"""S3 servers whose buckets users may register as datasets; administrators may name others."""
YARDMASTER_ENGINES = engines(HOME, SECRET_KEY)
YARDMASTER_DEFAULT_ENGINE = env.text("YARDMASTER_DEFAULT_ENGINE", "local")
YARDMASTER_LOCAL_ENGINE_FOR_ALL = env.flag("YARDMASTER_LOCAL_ENGINE_FOR_ALL")
"""The local engine does not isolate users: by default only administrators may launch on it."""
YARDMASTER_UPLOAD_TTL = timedelta(seconds=env.number("YARDMASTER_UPLOAD_TTL", 86_400, least=60))
YARDMASTER_MODEL_GRACE = timedelta(seconds=env.number("YARDMASTER_MODEL_GRACE", 7 * 86_400, least=0))
"""How long a deleted model can be restored. It counts against its namespace's quota until then."""
YARDMASTER_WEB_THREADS = env.number("YARDMASTER_WEB_THREADS", 32, least=2)
"""Requests that one web process works on at a time; each thread keeps a connection to the database."""
YARDMASTER_FILES_PER_VERSION = env.number("YARDMASTER_FILES_PER_VERSION", 1_000_000, least=1)
"""Of a dataset. Code has 20,000 at most."""
YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE = env.number("YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE", 64, least=1)
YARDMASTER_OPEN_UPLOADS_PER_USER = env.number("YARDMASTER_OPEN_UPLOADS_PER_USER", 64, least=1)
YARDMASTER_OPEN_UPLOADS_PER_JOB = env.number("YARDMASTER_OPEN_UPLOADS_PER_JOB", 64, least=1)
YARDMASTER_STREAM_CACHE = env.size("YARDMASTER_STREAM_CACHE", "10Gi", least=1 << 20)
YARDMASTER_OUTPUT_LIMIT = env.size("YARDMASTER_OUTPUT_LIMIT", "10Gi", least=1 << 20)
YARDMASTER_PACKAGE_INDEX, YARDMASTER_PACKAGES_LIMIT, YARDMASTER_PACKAGES_KEPT = package_index.packages()
YARDMASTER_SWEEPS = sweep_settings.sweeps()
YARDMASTER_OUTGOING = outgoing.outgoing()
"""Where webhooks and notifications may be sent."""
YARDMASTER_SCHEDULES = schedule_settings.schedules()
YARDMASTER_DATASET_DOWNLOADS = dataset_downloads.dataset_downloads()
YARDMASTER_IGNITE_POLICY = data_connections.policy()
YARDMASTER_GIT_HOSTS, YARDMASTER_GIT_LIMITS = code_from_git.hosts(), code_from_git.limits()
YARDMASTER_WORKING_FOLDER_LIMIT = env.size("YARDMASTER_WORKING_FOLDER_LIMIT", "2Gi", least=1 << 20)
YARDMASTER_WORKING_FOLDER_FILES = env.number("YARDMASTER_WORKING_FOLDER_FILES", 2_000, least=1)
"""The most bytes of outputs of one job; of an attempt, bytes and files that scripts write in their working folders."""
YARDMASTER_TIMING, YARDMASTER_SERVING, YARDMASTER_WORKBENCH = timing(), serving(), workbench()
YARDMASTER_JOB_LEASE = timedelta(seconds=env.number("YARDMASTER_JOB_LEASE", 60, least=5))
"""Longer than any look at a job takes; how long a job rests after the worker that looked at it was killed."""
YARDMASTER_EARLIER_SECRET_KEYS = env.words("YARDMASTER_EARLIER_SECRET_KEYS", "")
"""Earlier values of the secret key: what they encrypted is still read, until `manage.py rotate_secrets` has run."""
YARDMASTER_SECRETS_PER_NAMESPACE = env.number("YARDMASTER_SECRETS_PER_NAMESPACE", 200, least=1)
YARDMASTER_SECRET_CHANGES = env.number("YARDMASTER_SECRET_CHANGES", 60, least=1)
"""How often a user may set one in a minute."""
YARDMASTER_SPEC_LIMITS = SpecLimits(
    size=env.number("YARDMASTER_SPEC_BYTES", SpecLimits.size, least=1024),
    hold=timedelta(seconds=env.number("YARDMASTER_LONGEST_HOLD", 8 * 3600, least=0)),
)
"""What people may launch. What is stored already is under no rule any more."""
YARDMASTER_QUEUED_JOBS = env.number("YARDMASTER_QUEUED_JOBS", 1000, least=1)
YARDMASTER_PASSING_LIMIT = timedelta(seconds=env.number("YARDMASTER_PASSING_LIMIT", 600))
"""How many jobs of one namespace may wait at once; how long the head of the queue lets smaller jobs pass."""

# --- Static files ------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "frontend" / "static"]
WHITENOISE_IMMUTABLE_FILE_TEST = r"\.[0-9a-f]{12}\.[a-z0-9]+$|/chunks/[^/]+-[A-Z0-9]{8}\.js$"
"""What may be kept for ever: names with the content's hash, Django's or the bundler's."""
STATIC_ROOT = Path(env.text("YARDMASTER_STATIC_ROOT", str(BASE_DIR / ".static")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "portal.static_files.StaticFiles"},
}

# --- The portal's own log ----------------------------------------------------------------------------------------
LOG_LEVEL = env.text("YARDMASTER_LOG_LEVEL", "INFO")
LOG_CLIENT_ERRORS = env.number("YARDMASTER_LOG_CLIENT_ERRORS", 60)
"""A minute. Any client that reaches the portal can cause them."""
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = logging.INFO
LOGGING = log_settings(LOG_LEVEL, LOG_CLIENT_ERRORS)
configure_structlog()
YARDMASTER_DEFAULTS = env.DEFAULTS  # for the page of settings in force
