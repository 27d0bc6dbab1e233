from django.db import migrations, models


class Migration(migrations.Migration):
    """Where graders differ is read from the index alone, in its order, instead of sorting every label."""

    dependencies = [("annotate", "0007_marks_outlive_claims")]

    operations = [
        migrations.RemoveIndex(model_name="annotation", name="annotation_by_target"),
        migrations.AddIndex(
            model_name="annotation",
            index=models.Index(
                fields=["round", "dimension", "response", "claim", "passage", "label"],
                name="annotation_by_target",
            ),
        ),
    ]
