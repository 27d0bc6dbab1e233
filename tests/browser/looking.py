"""What the tests of pages look at in every page."""

from axe_playwright_python.sync_playwright import Axe

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


# Where each thing stands that passes is worked out only if asked for: a third of the time
VIOLATIONS = {"resultTypes": ["violations"]}


def check_accessible(page, options=None):
    """Every rule in the light; in the dark those about colours, since nothing else differs there."""
    for scheme, rules in (("dark", COLOURS), ("light", options)):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options=VIOLATIONS | (rules or {}))
        assert found.violations_count == 0, f"{scheme}: {found.generate_report()}"


def no_overflow(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")
