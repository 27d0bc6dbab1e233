import django.db.models.deletion
from django.db import migrations, models


def fill(apps, schema_editor):
    audits = apps.get_model("annotate", "ClaimAudit").objects.all()
    claims = apps.get_model("evalsets", "Claim").objects.filter(pk=models.OuterRef("claim"))
    audits.update(text=models.Subquery(claims.values("text")[:1]))


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0006_tallies"),
        ("evalsets", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="claimaudit",
            name="text",
            field=models.TextField(default=""),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="claimaudit",
            name="claim",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="audits",
                to="evalsets.claim",
            ),
        ),
    ]
