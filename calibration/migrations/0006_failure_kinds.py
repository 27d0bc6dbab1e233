"""The kinds of failure as they are named now; what a verdict failed of is kept in its detail."""

from django.db import migrations
from django.db.models import Q

RENAMED = {
    "server_error": "transport",
    "unreachable": "transport",
    "refused": "refused_to_judge",
    "invalid_json": "unparseable",
    "empty_answer": "unparseable",
}
OF_THE_KEY = (
    Q(detail__startswith="HTTP 401")
    | Q(detail__startswith="HTTP 403")
    | Q(detail__contains="is not set where the worker runs")
    | Q(detail__contains="holds a character that cannot be sent")
)


def rename(apps, schema_editor):
    verdicts = apps.get_model("calibration", "Verdict").objects
    for old, new in RENAMED.items():
        verdicts.filter(failure=old).update(failure=new)
    verdicts.filter(OF_THE_KEY, failure="rejected").update(failure="auth")


class Migration(migrations.Migration):
    dependencies = [("calibration", "0005_calls_limits_prompts")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
