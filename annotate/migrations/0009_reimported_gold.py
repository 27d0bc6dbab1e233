from django.db import migrations, models


class Migration(migrations.Migration):
    """A decision may come from an edited gold set."""

    dependencies = [("annotate", "0008_labels_by_target")]

    operations = [
        migrations.AlterField(
            model_name="adjudication",
            name="reason",
            field=models.CharField(
                choices=[
                    ("ambiguous_text", "the text is ambiguous"),
                    ("guideline_gap", "the rubric has a gap"),
                    ("annotator_error", "a grader slipped"),
                    ("edge_case", "an edge case"),
                    ("subjective_disagreement", "a matter of judgement"),
                    ("split", "half supported: split"),
                    ("other", "other"),
                    ("reimported", "re-imported gold"),
                    ("revoked", "taken back"),
                ],
                max_length=24,
            ),
        ),
    ]
