from django.db import migrations, models


class Migration(migrations.Migration):
    """Which models answered in a run is asked on every page that shows where its judge stands."""

    dependencies = [("calibration", "0014_judge_warm_up")]

    operations = [
        migrations.AddIndex(
            model_name="verdict",
            index=models.Index(
                fields=["run", "resolved_model"],
                condition=~models.Q(resolved_model=""),
                name="verdict_by_model",
            ),
        ),
    ]
