import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("evalsets", "0001_initial"), ("evalsets", "0002_api_tokens_and_kept_answers")]

    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="EvalSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=80, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("description", models.TextField(blank=True)),
                ("is_example", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("digest", models.CharField(max_length=128, primary_key=True, serialize=False)),
                ("token_key", models.CharField(db_index=True, max_length=25)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expiry", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=100)),
                ("scopes", models.JSONField(default=list)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="auth_token_set",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created"],
            },
        ),
        migrations.CreateModel(
            name="EvalSetVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("draft", "draft"), ("frozen", "frozen")], default="draft", max_length=10
                    ),
                ),
                (
                    "primary_unit",
                    models.CharField(
                        choices=[("claim", "claim"), ("response", "response"), ("decision", "decision")],
                        default="claim",
                        max_length=10,
                    ),
                ),
                ("content_hash", models.CharField(blank=True, max_length=64)),
                ("source_name", models.CharField(blank=True, max_length=255)),
                ("notices", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
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
                        related_name="versions",
                        to="evalsets.evalset",
                    ),
                ),
                (
                    "frozen_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("evalset", "number"), name="version_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("content_hash", ""), ("frozen_at__isnull", True), ("state", "draft")),
                            models.Q(
                                ("frozen_at__isnull", False),
                                ("state", "frozen"),
                                models.Q(("content_hash", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="version_frozen_has_hash",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("item_id", models.CharField(max_length=500)),
                ("question", models.TextField(null=True)),
                ("strata", models.JSONField(default=dict)),
                ("answerable", models.BooleanField(null=True)),
                ("unanswerable_reason", models.CharField(blank=True, max_length=30)),
                ("reference_answer", models.TextField(null=True)),
                ("expected_documents", models.JSONField(null=True)),
                ("expected_passages", models.JSONField(null=True)),
                ("variant_of", models.CharField(blank=True, max_length=500)),
                ("extra", models.JSONField(default=dict)),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "position"],
                "constraints": [
                    models.UniqueConstraint(fields=("version", "item_id"), name="item_id_once"),
                    models.UniqueConstraint(fields=("version", "position"), name="item_position_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("unanswerable_reason", ""),
                            models.Q(
                                ("answerable", False),
                                (
                                    "unanswerable_reason__in",
                                    (
                                        "out_of_scope",
                                        "in_domain_absent",
                                        "false_premise",
                                        "time_shifted",
                                        "permission_shifted",
                                        "underspecified",
                                    ),
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="item_reason_only_if_unanswerable",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("body", models.TextField(blank=True)),
                ("location", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="kept_answer_by_age")],
                "constraints": [models.UniqueConstraint(fields=("person", "key"), name="kept_answer_once")],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(choices=[("lead", "eval lead"), ("grader", "grader")], max_length=10),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to="evalsets.evalset",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("person", "evalset", "role"), name="membership_once"),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["lead", "grader"])), name="membership_role_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Response",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("response_id", models.CharField(max_length=500)),
                ("sample", models.PositiveIntegerField(default=1)),
                ("text", models.TextField(blank=True)),
                ("retrieval_query", models.TextField(null=True)),
                ("extra", models.JSONField(default=dict)),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="evalsets.item",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["run", "position"],
            },
        ),
        migrations.CreateModel(
            name="Passage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rank", models.PositiveIntegerField()),
                ("passage_id", models.CharField(max_length=500)),
                ("title", models.TextField(null=True)),
                ("document", models.TextField(null=True)),
                ("text", models.TextField(blank=True)),
                ("extra", models.JSONField(default=dict)),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="passages",
                        to="evalsets.response",
                    ),
                ),
            ],
            options={
                "ordering": ["response", "rank"],
                "constraints": [
                    models.UniqueConstraint(fields=("response", "passage_id"), name="passage_id_once"),
                    models.UniqueConstraint(fields=("response", "rank"), name="passage_rank_once"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("claim_id", models.CharField(max_length=500)),
                ("text", models.TextField()),
                ("source_ids", models.JSONField(default=list)),
                ("decision", models.BooleanField(null=True)),
                ("extra", models.JSONField(default=dict)),
                (
                    "parent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="parts",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to="evalsets.response",
                    ),
                ),
            ],
            options={
                "ordering": ["response", "position", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("response", "claim_id"), name="claim_id_once"),
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="claim_has_text"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("parent__isnull", True),
                            models.Q(("parent", models.F("pk")), _negated=True),
                            _connector="OR",
                        ),
                        name="claim_not_own_parent",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="System",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=300)),
                ("model", models.CharField(max_length=300, null=True)),
                ("provider", models.CharField(blank=True, max_length=300)),
                ("family", models.CharField(blank=True, max_length=300)),
                ("date", models.CharField(blank=True, max_length=100)),
                ("settings", models.JSONField(default=dict)),
                ("given", models.JSONField(default=dict)),
                ("fingerprint", models.CharField(max_length=64)),
                (
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="systems",
                        to="evalsets.evalset",
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("evalset", "fingerprint"), name="system_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SystemRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[("draft", "draft"), ("frozen", "frozen")], default="draft", max_length=10
                    ),
                ),
                ("content_hash", models.CharField(blank=True, max_length=64)),
                ("source_name", models.CharField(blank=True, max_length=255)),
                ("notices", models.JSONField(blank=True, default=list)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("frozen_at", models.DateTimeField(blank=True, null=True)),
                (
                    "system",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="evalsets.system"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("version", "number"), name="run_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("content_hash", ""), ("frozen_at__isnull", True), ("state", "draft")),
                            models.Q(
                                ("frozen_at__isnull", False),
                                ("state", "frozen"),
                                models.Q(("content_hash", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="run_frozen_has_hash",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="response",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="responses", to="evalsets.systemrun"
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(fields=("version", "response_id"), name="response_id_once"),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(fields=("run", "item", "sample"), name="response_sample_once"),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=models.Q(("sample__gte", 1)), name="response_sample_from_one"
            ),
        ),
    ]
