"""The people of the built-in example. Their passwords are published, so they exist only with it."""

from typing import NamedTuple

from django.utils.translation import gettext_lazy as _


class LogIn(NamedTuple):
    username: str
    password: str
    role: str


LEAD = LogIn("lead", "norrwick-lead", _("eval lead: reads agreement, adjudicates, runs judges"))
GRADERS = (
    LogIn("ada", "norrwick-ada", _("grader")),
    LogIn("ben", "norrwick-ben", _("grader")),
)
LOG_INS = (LEAD, *GRADERS)
NAME = "Norrwick assistant"
SLUG = "norrwick-assistant"
