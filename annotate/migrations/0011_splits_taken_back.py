import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """A split that was accepted can be taken back; the log keeps its parts."""

    dependencies = [
        ("annotate", "0010_notes_by_round"),
        ("evalsets", "0002_api_tokens_and_kept_answers"),
    ]

    operations = [
        migrations.AlterField(
            model_name="claimsplit",
            name="state",
            field=models.CharField(
                choices=[
                    ("proposed", "proposed"),
                    ("accepted", "accepted"),
                    ("declined", "declined"),
                    ("taken_back", "taken back"),
                ],
                default="proposed",
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="WithdrawnPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "claim",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="withdrawal",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "split",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="withdrawn",
                        to="annotate.claimsplit",
                    ),
                ),
            ],
        ),
    ]
