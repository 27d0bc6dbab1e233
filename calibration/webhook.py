"""One signed JSON message to the address that the server's settings name.

The address comes from the environment and from no page: whoever may set it may already do what the server
can, so an address inside one's own network is allowed. Redirects are not followed, lest the receiver send
the message elsewhere.
"""

import base64
import hashlib
import hmac
import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Any
from uuid import UUID

from django.conf import settings

SECONDS = 10


class NotDelivered(Exception):
    """The receiver did not take the message; says why, without the address, which may be a secret."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_keywords: Any) -> None:
        return None


def post_json(*, message_id: UUID, payload: dict[str, Any]) -> None:
    body = json.dumps(payload, ensure_ascii=False, allow_nan=False).encode()
    headers = {"Content-Type": "application/json; charset=utf-8", **_signature(str(message_id), body)}
    request = urllib.request.Request(settings.ALERT_WEBHOOK_URL, data=body, headers=headers, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=SECONDS):
            return
    except urllib.error.HTTPError as error:
        raise NotDelivered(f"HTTP {error.code}") from error
    except http.client.InvalidURL as error:  # its message holds the address
        raise NotDelivered("ALERT_WEBHOOK_URL is not an address that can be asked") from error
    except (OSError, http.client.HTTPException) as error:
        raise NotDelivered(str(getattr(error, "reason", error))) from error


def _signature(message_id: str, body: bytes) -> dict[str, str]:
    """Headers as the Standard Webhooks specification has them, so that its libraries can check them."""
    sent_at = str(int(time.time()))
    headers = {"webhook-id": message_id, "webhook-timestamp": sent_at}
    if settings.ALERT_WEBHOOK_SECRET:
        signed = b".".join([message_id.encode(), sent_at.encode(), body])
        digest = hmac.new(_key(settings.ALERT_WEBHOOK_SECRET), signed, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))
