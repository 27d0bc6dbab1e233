"""What the known cases told of a judge, wherever somebody may start or trust it."""

from django import template

from calibration.judge_warm_up import warning_about

register = template.Library()


@register.simple_tag
def warm_up_warning(judge) -> str:
    return warning_about(judge) if judge else ""
