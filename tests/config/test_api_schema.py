"""The OpenAPI document."""

import pytest

pytestmark = pytest.mark.django_db


def test_the_document_describes_without_a_doubt(client, capsys):
    """The generator warns of what it had to guess."""
    document = client.get("/api/v1/schema/").json()
    assert capsys.readouterr().err == ""
    assert document["openapi"].startswith("3.1")
    operations = [op for path in document["paths"].values() for op in path.values()]
    assert all(
        {"401", "403", "429"} <= op["responses"].keys() for op in operations if op["operationId"] != "schema"
    )
