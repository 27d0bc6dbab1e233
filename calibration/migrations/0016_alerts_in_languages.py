from django.db import migrations, models


class Migration(migrations.Migration):
    """What workers find was worded in the server's language only, whatever the reader's is."""

    dependencies = [("calibration", "0015_verdicts_by_model")]

    operations = [
        migrations.AddField(
            model_name="alert",
            name="translations",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
