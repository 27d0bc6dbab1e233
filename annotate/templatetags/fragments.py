from typing import Any

from django import template
from django.template.loader import get_template
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.simple_tag(takes_context=True)
def fragment(context: template.Context, name: str, **given: object) -> SafeString:
    """A part of the grader's screen, written in Jinja, on a page written in Django's language."""
    of_page: dict[Any, Any] = context.flatten()
    return mark_safe(get_template(name, using="jinja2").render(of_page | given, context["request"]))
