import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """The wording that asks a model for claims becomes versioned data, as that of a judge is."""

    dependencies = [
        ("calibration", "0016_alerts_in_languages"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ExtractionPromptVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("system", models.TextField()),
                ("closing", models.TextField()),
                ("note", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="extraction_prompts",
                        to="evalsets.evalset",
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("evalset", "number"), name="extraction_prompt_number_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 2)), name="extraction_prompt_number_after_built_in"
                    ),
                ],
            },
        ),
    ]
