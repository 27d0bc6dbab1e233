from django import template

register = template.Library()

# C0 controls and DEL as their control pictures; tab and line ends are shown by the page itself.
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"} | {0x7F: 0x2421}


@register.filter
def visible(text):
    """Somebody else's text with its control characters made visible; what is stored stays as it is."""
    return str(text).translate(_PICTURES)
