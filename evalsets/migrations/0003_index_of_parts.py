import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """The parts of a claim are looked up by its key; whole claims, nearly all there are, by their response."""

    dependencies = [
        ("evalsets", "0002_api_tokens_and_kept_answers"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("parent__isnull", False)), fields=["parent"], name="claim_parts"
            ),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="claim",
                    name="parent",
                    field=models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="parts",
                        to="evalsets.claim",
                    ),
                ),
            ],
            # SQLite would write the whole table anew to lose an index.
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX evalsets_claim_parent_id_5e9cac60",
                    "CREATE INDEX evalsets_claim_parent_id_5e9cac60 ON evalsets_claim (parent_id)",
                ),
            ],
        ),
    ]
