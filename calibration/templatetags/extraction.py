"""What the claims of a system run rest on, for the page that freezes it."""

from django import template

from calibration.extraction import extraction_of
from calibration.extraction_runs import scope_of
from evalsets.claims import origins_of

register = template.Library()


@register.inclusion_tag("calibration/_claims_of_run.html")
def claims_of_run(run):
    """How many claims there are, where they come from, and whether anybody has looked at them."""
    return {
        "run": run,
        "version": run.version,
        "origins": origins_of([run]),
        "scope": scope_of([run]),
        "audit": extraction_of([run]),
    }
