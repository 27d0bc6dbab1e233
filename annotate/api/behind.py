"""What holds for every answer with labels, agreement, gold or verdicts in it."""

from typing import Any

from annotate.access import labels_of
from evalsets.api.base import ApiView


class BehindTheDoor(ApiView):
    """An answer that was kept is not given again to somebody to whom it is closed by now."""

    def again(self, told: Any) -> Any:
        labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return told
