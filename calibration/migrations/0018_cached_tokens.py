from django.db import migrations, models


class Migration(migrations.Migration):
    """What of a prompt a server had read before, and charges less for."""

    dependencies = [("calibration", "0017_extraction_prompts")]

    operations = [
        migrations.AddField(
            model_name=name, name="cached_tokens", field=models.PositiveIntegerField(null=True)
        )
        for name in ("call", "verdict")
    ]
