"""Reading settings from the environment; a wrong value stops the start with its name."""

import base64
import contextlib
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def flag(name: str, *, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value == "":
        return default
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off"):
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0 (true/false), not {value!r}.")


def whole_number(name: str, *, default: int, least: int = 1) -> int:
    value = os.environ.get(name, "").strip()
    if value == "":
        return default
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def json_object(name: str) -> dict[str, Any]:
    value = os.environ.get(name, "").strip() or "{}"
    try:
        parsed = json.loads(value)
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f"{name} must be a JSON object: {error}.") from error
    if not isinstance(parsed, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object, not {value!r}.")
    return parsed


def trust_gate(name: str) -> dict[str, Any]:
    """Thresholds that differ from the usual ones; a wrong name or value stops the start."""
    thresholds = json_object(name)
    if thresholds:
        from calibration.gate import GatePolicy  # loads numpy, which only an unusual gate needs here

        try:
            GatePolicy(**thresholds)
        except (TypeError, ValueError) as error:
            raise ImproperlyConfigured(
                f"{name} cannot be used: {str(error).removeprefix('GatePolicy.__init__() ')}."
            ) from error
    return thresholds


def prepare_threshold(of_address: object) -> int | None:
    """How often a statement is sent before PostgreSQL keeps its plan; never where plans may not be kept."""
    if of_address == "off":
        return None
    if not isinstance(of_address, int):
        raise ImproperlyConfigured(
            f"DATABASE_URL must name a whole number or off as prepare_threshold, not {of_address!r}."
        )
    return of_address


def data_dir(default: Path) -> Path:
    path = Path(os.environ.get("DATA_DIR") or default).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"DATA_DIR {str(path)!r} cannot be used: {error.strerror}.") from error
    return path


def public_url() -> str:
    value = os.environ.get("PUBLIC_URL", "").strip().rstrip("/")
    if value == "":
        return ""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise ImproperlyConfigured(
            "PUBLIC_URL must look like https://touchstone.example.org (scheme, host, no path), "
            f"not {value!r}."
        )
    return value


def web_address(name: str) -> str:
    value = os.environ.get(name, "").strip()
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ImproperlyConfigured(f"{name} must be an address that starts with https:// or http://.")
    return value


def webhook_secret(name: str) -> str:
    """A secret in base64, as the Standard Webhooks libraries take it."""
    value = os.environ.get(name, "").strip()
    try:
        key = base64.b64decode(value.removeprefix("whsec_"), validate=True)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{name} must be base64, such as `openssl rand -base64 32` prints."
        ) from error
    if value and len(key) < 24:
        raise ImproperlyConfigured(f"{name} must hold at least 24 bytes in base64.")
    return value


def secret_key(folder: Path) -> str:
    """The key from SECRET_KEY, else one made for this installation and kept beside its data."""
    given = os.environ.get("SECRET_KEY", "")
    if given:
        if len(given) < 32:
            raise ImproperlyConfigured("SECRET_KEY must have at least 32 characters.")
        return given
    path = folder / "secret-key"
    if not path.exists():
        # Written whole under another name first: no process that starts just now reads half a key.
        descriptor, draft = tempfile.mkstemp(dir=folder)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    return path.read_text().strip()
