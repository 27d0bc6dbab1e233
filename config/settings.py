"""All settings, in one place; docs/operations.md says what each environment variable does."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import environment as env

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = env.data_dir(BASE_DIR / "var")
APP_VERSION = "0.1.0"

DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.secret_key(DATA_DIR)
PUBLIC_URL = env.public_url()
EXAMPLE = env.flag("EXAMPLE", default=not PUBLIC_URL)  # its log-ins are published

# One variable tells everything that depends on the outside address.
if PUBLIC_URL:
    _public = urlsplit(PUBLIC_URL)
    ALLOWED_HOSTS = [_public.hostname, "localhost", "127.0.0.1", "[::1]"]
    CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
    if _public.scheme == "https":
        SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        SECURE_HSTS_SECONDS = 3600
else:
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
    "axes",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "evalsets",
    "annotate",
    "calibration",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "annotate.middleware.ClosedWhileGradingMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["django.templatetags.i18n", "django.templatetags.static"],
        },
    },
    {  # *.jinja: what every label renders
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {"environment": "config.jinja.environment"},
    },
]

# Database. SQLite writers queue for the lock at BEGIN instead of failing half-way through.
_DATABASE_URL = os.environ.get("DATABASE_URL", "") or f"sqlite:///{DATA_DIR / 'touchstone.sqlite3'}"
try:
    DATABASES = {"default": dj_database_url.parse(_DATABASE_URL, conn_max_age=60)}
except (ValueError, KeyError) as error:
    raise ImproperlyConfigured(f"DATABASE_URL is not a database address: {error}") from error
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["ENGINE"] = "config.sqlite"
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
elif DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # To compile a query of a lead's page takes seconds where the query takes one. Options of the address win.
    of_address = DATABASES["default"].get("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] = {
        **of_address,
        "options": f"-c jit=off {of_address.get('options', '')}".strip(),
        "prepare_threshold": env.prepare_threshold(of_address.get("prepare_threshold", 0)),
    }
else:
    raise ImproperlyConfigured(
        "DATABASE_URL must name SQLite (sqlite:///file) or PostgreSQL (postgres://...)."
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# People
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "config.sessions.PeopleBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "registration/locked.html"
AXES_VERBOSE = False
SESSION_ENGINE = "config.sessions"
SESSION_COOKIE_AGE = 14 * 24 * 3600
CSRF_FAILURE_VIEW = "config.views.csrf_failure"

# What a page may load: our own files, nothing inline, nothing evaluated.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

# Language and time: stored in UTC, shown with the offset.
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "config" / "locale"]
FORMAT_MODULE_PATH = ["config.formats"]
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
TESTING = env.flag("TOUCHSTONE_TESTING", default=False)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if TESTING or DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = TESTING or DEBUG
MEDIA_ROOT = DATA_DIR / "files"
IMPORT_MAX_BYTES = env.whole_number("IMPORT_MAX_MB", default=512) * 1024 * 1024
IMPORT_INLINE_BYTES = 4 * 1024 * 1024  # a larger upload is imported by a worker
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# Queue. A message is only a doorbell; the rows hold the work and the sweep rings again.
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL", "") or "filesystem://localhost"
if CELERY_BROKER_URL.startswith("filesystem://"):
    _queue = DATA_DIR / "queue"
    for _folder in ("messages", "control"):
        (_queue / _folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.05,
    }
elif CELERY_BROKER_URL.startswith(("redis://", "rediss://")):
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 900,
        "unacked_restore_interval": 10,
        "unacked_restore_throttle": 1,
    }
else:
    raise ImproperlyConfigured("CELERY_BROKER_URL must start with redis://, rediss:// or filesystem://.")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False  # the sweep rings again; to acknowledge over a lost connection ends the worker
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "touchstone"
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "calibration.tasks.sweep", "schedule": 10.0, "options": {"expires": 30}},
    "watch_judges": {
        "task": "calibration.tasks.watch_judges",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "tell": {"task": "calibration.tasks.tell", "schedule": 15.0, "options": {"expires": 30}},
    "prune": {"task": "evalsets.tasks.prune", "schedule": 3600.0, "options": {"expires": 3600}},
}

# REST. Programs send a token, browsers their session; every error is a problem document (RFC 9457).
API_CALLS_PER_MINUTE = env.whole_number("API_CALLS_PER_MINUTE", default=600)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "evalsets.api.authentication.Token",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["evalsets.api.authentication.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["evalsets.api.bodies.JSONBody"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": f"{API_CALLS_PER_MINUTE}/min"},
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "evalsets.api.schema.Described",
    "EXCEPTION_HANDLER": "config.api.problem_of",
    "URL_FORMAT_OVERRIDE": None,
}
KNOX_TOKEN_MODEL = "evalsets.ApiToken"
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_PREFIX": "ts_", "TOKEN_TTL": None}
MIGRATION_MODULES = {"knox": None}  # its own table is never made: the tokens are ours
SPECTACULAR_SETTINGS = {
    "TITLE": "Touchstone",
    "DESCRIPTION": "Eval sets in; agreement, calibration reports, rates and gold out.",
    "VERSION": APP_VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "POSTPROCESSING_HOOKS": ["evalsets.api.schema.refuse_unknown_fields"],
}

# Judges. A judge may name a variable of its own for its key; these are the defaults.
JUDGE_API_KEY = os.environ.get("JUDGE_API_KEY", "")
JUDGE_BASE_URL = os.environ.get("JUDGE_BASE_URL", "").rstrip("/")
JUDGE_TIMEOUT_SECONDS = env.whole_number("JUDGE_TIMEOUT_SECONDS", default=60)
JUDGE_LEASE_SECONDS = env.whole_number("JUDGE_LEASE_SECONDS", default=180)
JUDGE_MAX_ATTEMPTS = env.whole_number("JUDGE_MAX_ATTEMPTS", default=4)
TRUST_GATE = env.trust_gate("TRUST_GATE")

# Who is told that a judge is no longer trusted, beside the page of alerts. The webhook's address comes from
# here only: no page may point the server at an address inside its own network.
ALERT_WEBHOOK_URL = env.web_address("ALERT_WEBHOOK_URL")
ALERT_WEBHOOK_SECRET = env.webhook_secret("ALERT_WEBHOOK_SECRET")
EMAIL_HOST = os.environ.get("EMAIL_HOST", "")  # none: no e-mail is sent
EMAIL_PORT = env.whole_number("EMAIL_PORT", default=587)
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=True)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("DEFAULT_FROM_EMAIL", "") or "touchstone@localhost"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {name: {"level": "WARNING"} for name in ("axes", "celery", "httpx", "httpx2")},
}
