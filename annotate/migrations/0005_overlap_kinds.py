from django.db import migrations, models
from django.db.models import Q


def name_the_kind(apps, schema_editor):
    """A round without a number overlaps wholly; until now all were named random."""
    apps.get_model("annotate", "Round").objects.filter(overlap__isnull=True).update(overlap_kind="all")


class Migration(migrations.Migration):
    dependencies = [("annotate", "0004_revoked_decisions")]

    operations = [
        migrations.AlterField(
            "round",
            "overlap_kind",
            models.CharField(
                choices=[
                    ("all", "every response"),
                    ("first", "the first responses of the set"),
                    ("random", "responses drawn at random"),
                    ("share", "a share of every stratum, drawn at random"),
                ],
                default="all",
                max_length=6,
            ),
        ),
        migrations.RunPython(name_the_kind, migrations.RunPython.noop),
        migrations.AddConstraint(
            "round",
            models.CheckConstraint(
                condition=Q(overlap_kind="all", overlap__isnull=True)
                | (~Q(overlap_kind="all") & Q(overlap__isnull=False)),
                name="round_overlap_counted",
            ),
        ),
        migrations.AddConstraint(
            "round",
            models.CheckConstraint(
                condition=Q(
                    overlap_kind="share",
                    overlap_share__isnull=False,
                    overlap_share__gt=0,
                    overlap_share__lte=1,
                )
                | (~Q(overlap_kind="share") & Q(overlap_share__isnull=True, stratum="")),
                name="round_share_of_a_stratum",
            ),
        ),
        migrations.AddConstraint(
            "round",
            models.CheckConstraint(
                condition=Q(kind="second_look", second_look_of__isnull=False)
                | (~Q(kind="second_look") & Q(second_look_of__isnull=True)),
                name="round_second_look_of_a_round",
            ),
        ),
    ]
