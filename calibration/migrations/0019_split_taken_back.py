from django.db import migrations, models

FAILURES = [
    ("transport", "no connection, or a fault of the server (5xx)"),
    ("rate_limited", "rate limited (429)"),
    ("timeout", "no answer in time"),
    ("auth", "key missing or refused"),
    ("too_long", "too long for the model"),
    ("budget", "the account's credit is used up"),
    ("rejected", "request rejected (another 4xx)"),
    ("truncated", "answer cut short"),
    ("refused_to_judge", "the judge refused"),
    ("unparseable", "not the JSON asked for, or nothing"),
    ("ambiguous", "more than one answer"),
    ("off_menu", "a label that was not offered"),
    ("no_majority", "the panel has no majority"),
    ("no_quorum", "too few of the panel have a label"),
    ("overtaken", "its claims were settled otherwise meanwhile"),
    ("withdrawn", "its split was taken back before it was asked"),
    ("cancelled", "cancelled before it was asked"),
    ("internal", "internal error"),
]


class Migration(migrations.Migration):
    """A verdict on a part whose split is gone is not asked for, and says why it has no label."""

    dependencies = [("calibration", "0018_cached_tokens")]

    operations = [
        migrations.AlterField(
            model_name=name,
            name="failure",
            field=models.CharField(blank=True, choices=FAILURES, max_length=16),
        )
        for name in ("call", "verdict", "warmupverdict")
    ]
