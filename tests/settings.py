"""The settings with what a test run changes: own data folder, cheap passwords, plain static files."""

import atexit
import os
import shutil
import tempfile

_data_dir = tempfile.mkdtemp(prefix="touchstone-tests-")
atexit.register(shutil.rmtree, _data_dir, ignore_errors=True)

# A developer's own variables must not reach the tests: a judge's key, a production database.
for _name in (
    "CELERY_BROKER_URL",
    "JUDGE_API_KEY",
    "JUDGE_BASE_URL",
    "PUBLIC_URL",
    "SECRET_KEY",
    "DEBUG",
    "TRUST_GATE",
):
    os.environ.pop(_name, None)
os.environ["TOUCHSTONE_TESTING"] = "1"
os.environ["DATA_DIR"] = _data_dir
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")

from config.settings import *  # noqa: E402, F403
from config.settings import DATA_DIR, DATABASES, REST_FRAMEWORK, STATIC_ROOT  # noqa: E402

STATIC_ROOT.mkdir(exist_ok=True)
REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] = {"user": None}
WHITENOISE_AUTOREFRESH = True  # each client would list all static files anew
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if DATABASES["default"]["ENGINE"] == "config.sqlite":
    # A file: an in-memory database lives in one connection; the live server and workers bring their own.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
