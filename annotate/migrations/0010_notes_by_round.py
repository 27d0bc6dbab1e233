from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """The notes of a round are found without reading every label."""

    dependencies = [("annotate", "0009_reimported_gold")]

    operations = [
        migrations.AddIndex(
            model_name="annotation",
            index=models.Index(fields=["round"], condition=~Q(note=""), name="annotation_noted"),
        ),
    ]
