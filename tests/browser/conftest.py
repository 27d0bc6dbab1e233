import pytest
from django.test import Client

from tests.browser.looking import DESK


@pytest.fixture
def open_as(live_server, new_context):
    """Opens a page of the running server as a person: open_as(grader_a, path, viewport=PHONE)."""

    def open_page(person, path, **options):
        client = Client()
        client.force_login(person)
        context = new_context(**{"viewport": DESK, **options})
        session = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}
        context.add_cookies([session])
        page = context.new_page()
        page.goto(live_server.url + path)
        return page

    return open_page
