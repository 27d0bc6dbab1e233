import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("annotate", "0001_initial"),
        ("annotate", "0002_unblinding"),
        ("annotate", "0003_rubrics_as_data"),
        ("annotate", "0004_revoked_decisions"),
        ("annotate", "0005_overlap_kinds"),
        ("annotate", "0006_tallies"),
        ("annotate", "0007_marks_outlive_claims"),
    ]

    initial = True

    dependencies = [
        ("auth", "__first__"),
        ("evalsets", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Adjudication",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("label", models.CharField(max_length=30)),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("ambiguous_text", "the text is ambiguous"),
                            ("guideline_gap", "the rubric has a gap"),
                            ("annotator_error", "a grader slipped"),
                            ("edge_case", "an edge case"),
                            ("subjective_disagreement", "a matter of judgement"),
                            ("split", "half supported: split"),
                            ("other", "other"),
                            ("revoked", "taken back"),
                        ],
                        max_length=24,
                    ),
                ),
                ("note", models.TextField(blank=True)),
                ("judge_seen", models.BooleanField(default=False)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "passage",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.passage",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="adjudications",
                        to="evalsets.response",
                    ),
                ),
                (
                    "revokes",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="revoked_by",
                        to="annotate.adjudication",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="AuditSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("seed", models.BigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("runs", models.ManyToManyField(related_name="audit_samples", to="evalsets.systemrun")),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audit_samples",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("version", "number"), name="audit_sample_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditedResponse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("missing", models.PositiveIntegerField(blank=True, null=True)),
                ("note", models.TextField(blank=True)),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audits",
                        to="evalsets.response",
                    ),
                ),
                (
                    "sample",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="annotate.auditsample",
                    ),
                ),
            ],
            options={
                "ordering": ["sample", "position"],
                "constraints": [
                    models.UniqueConstraint(fields=("sample", "response"), name="audited_response_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("done_at__isnull", True), ("missing__isnull", True)),
                            models.Q(("done_at__isnull", False), ("missing__isnull", False)),
                            _connector="OR",
                        ),
                        name="audited_response_done_has_count",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClaimAudit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField()),
                (
                    "mark",
                    models.CharField(
                        choices=[
                            ("well_split", "well split"),
                            ("badly_split", "badly split"),
                            ("not_in_response", "not in the response"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "audited",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to="annotate.auditedresponse",
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="audits",
                        to="evalsets.claim",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("audited", "claim"), name="claim_audit_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Grader",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="graders",
                        to="evalsets.evalset",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="graders",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("evalset", "name"), name="grader_name_once"),
                    models.UniqueConstraint(fields=("evalset", "number"), name="grader_number_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("person__isnull", False)),
                        fields=("evalset", "person"),
                        name="grader_person_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Round",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("first", "first grading"),
                            ("second_look", "second look"),
                            ("imported", "imported labels"),
                        ],
                        default="first",
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("paused", "paused"), ("closed", "closed")],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("overlap", models.PositiveIntegerField(null=True)),
                (
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
                ("overlap_share", models.FloatField(blank=True, null=True)),
                ("stratum", models.CharField(blank=True, max_length=200)),
                ("graders_each", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("warm_up", models.BooleanField(default=False)),
                ("seed", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
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
                ("runs", models.ManyToManyField(related_name="rounds", to="evalsets.systemrun")),
                (
                    "second_look_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="second_looks",
                        to="annotate.round",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rounds",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "number"],
            },
        ),
        migrations.CreateModel(
            name="Opening",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="evalsets.response"
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="openings",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("round", "response"), name="opening_once")],
            },
        ),
        migrations.CreateModel(
            name="GoldLabel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("label", models.CharField(max_length=30)),
                (
                    "source",
                    models.CharField(
                        choices=[("agreed", "agreed"), ("adjudicated", "adjudicated"), ("single", "single")],
                        max_length=12,
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "adjudication",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gold",
                        to="annotate.adjudication",
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gold",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "passage",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.passage",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gold",
                        to="evalsets.response",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="gold", to="annotate.round"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", True)),
                        fields=("round", "dimension", "claim"),
                        name="gold_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", True)),
                        fields=("round", "dimension", "response"),
                        name="gold_once_per_response",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", False)),
                        fields=("round", "dimension", "passage"),
                        name="gold_once_per_passage",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", False)),
                        fields=("round", "dimension", "claim", "passage"),
                        name="gold_once_per_citation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("claim__isnull", False),
                                ("dimension", "grounding"),
                                ("label__in", ("supported", "contradicted", "unsupported", "unverifiable")),
                                ("passage__isnull", True),
                            ),
                            models.Q(
                                ("claim__isnull", True),
                                ("dimension", "abstention"),
                                ("label__in", ("REFUSED", "ANSWERED", "CLARIFY")),
                                ("passage__isnull", True),
                            ),
                            models.Q(
                                models.Q(("dimension__in", ["grounding", "abstention"]), _negated=True),
                                models.Q(("label", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="gold_label_fits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("adjudication__isnull", False), ("source", "adjudicated")),
                            models.Q(
                                models.Q(("source", "adjudicated"), _negated=True),
                                ("adjudication__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="gold_adjudicated_has_adjudication",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Flag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("note", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flags",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flags",
                        to="evalsets.response",
                    ),
                ),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flags",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="annotate.round"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False)),
                        fields=("round", "grader", "claim"),
                        name="flag_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True)),
                        fields=("round", "grader", "response"),
                        name="flag_once_per_response",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClaimSplit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("parts", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("proposed", "proposed"),
                            ("accepted", "accepted"),
                            ("declined", "declined"),
                        ],
                        default="proposed",
                        max_length=10,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="splits",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "grader",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="splits",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="splits",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("round", "claim", "grader"), name="split_once_per_grader"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "accepted")),
                        fields=("claim",),
                        name="split_accepted_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slot", models.PositiveSmallIntegerField()),
                ("order", models.PositiveIntegerField()),
                ("skips", models.PositiveIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "pending"), ("done", "done")], default="pending", max_length=8
                    ),
                ),
                ("done_at", models.DateTimeField(blank=True, null=True)),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="evalsets.response",
                    ),
                ),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "ordering": ["round", "grader", "order"],
                "indexes": [
                    models.Index(
                        fields=["round", "grader", "state", "skips", "order"], name="assignment_in_queue"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("round", "response", "grader"), name="assignment_once"),
                    models.UniqueConstraint(
                        fields=("round", "response", "slot"), name="assignment_slot_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AnnotationEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("labelled", "labelled"),
                            ("changed", "changed"),
                            ("taken_back", "taken back"),
                            ("imported", "imported"),
                            ("reassigned", "handed to another grader"),
                        ],
                        max_length=12,
                    ),
                ),
                ("label", models.CharField(max_length=30)),
                ("note", models.TextField(blank=True)),
                ("evidence", models.JSONField(blank=True, default=list)),
                ("milliseconds", models.PositiveIntegerField(blank=True, null=True)),
                ("key", models.UUIDField(blank=True, null=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "passage",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.passage",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="evalsets.response"
                    ),
                ),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [models.Index(fields=["round", "grader", "-id"], name="event_latest_of_grader")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("key__isnull", False)),
                        fields=("grader", "key"),
                        name="event_key_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Annotation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("label", models.CharField(max_length=30)),
                ("note", models.TextField(blank=True)),
                ("evidence", models.JSONField(blank=True, default=list)),
                ("milliseconds", models.PositiveIntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="annotations",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "passage",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.passage",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="annotations",
                        to="evalsets.response",
                    ),
                ),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="annotations",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="annotations",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["round", "dimension", "response"], name="annotation_by_target"),
                    models.Index(fields=["round", "grader", "-updated_at", "-id"], name="annotation_latest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", True)),
                        fields=("round", "dimension", "grader", "claim"),
                        name="annotation_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", True)),
                        fields=("round", "dimension", "grader", "response"),
                        name="annotation_once_per_response",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", False)),
                        fields=("round", "dimension", "grader", "passage"),
                        name="annotation_once_per_passage",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", False)),
                        fields=("round", "dimension", "grader", "claim", "passage"),
                        name="annotation_once_per_citation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("claim__isnull", False),
                                ("dimension", "grounding"),
                                ("label__in", ("supported", "contradicted", "unsupported", "unverifiable")),
                                ("passage__isnull", True),
                            ),
                            models.Q(
                                ("claim__isnull", True),
                                ("dimension", "abstention"),
                                ("label__in", ("REFUSED", "ANSWERED", "CLARIFY")),
                                ("passage__isnull", True),
                            ),
                            models.Q(
                                models.Q(("dimension__in", ["grounding", "abstention"]), _negated=True),
                                models.Q(("label", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="annotation_label_fits",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="adjudication",
            name="round",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="adjudications", to="annotate.round"
            ),
        ),
        migrations.CreateModel(
            name="Rubric",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("is_imported", models.BooleanField(default=False)),
                (
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rubrics",
                        to="evalsets.evalset",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("evalset", "name"), name="rubric_name_once")],
            },
        ),
        migrations.CreateModel(
            name="RubricVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("decisions", models.TextField(blank=True)),
                ("reference_based", models.BooleanField(default=False)),
                ("sha256", models.CharField(max_length=64)),
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
                    "rubric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="annotate.rubric",
                    ),
                ),
            ],
            options={
                "ordering": ["rubric", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("rubric", "number"), name="rubric_number_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RubricTask",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("dismissed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "adjudication",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rubric_task",
                        to="annotate.adjudication",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "rubric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tasks",
                        to="annotate.rubric",
                    ),
                ),
                (
                    "settled_in",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="settled_tasks",
                        to="annotate.rubricversion",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="round",
            name="rubric_version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="rounds",
                to="annotate.rubricversion",
            ),
        ),
        migrations.CreateModel(
            name="Dimension",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=30)),
                (
                    "target",
                    models.CharField(
                        choices=[
                            ("claim", "claim"),
                            ("response", "response"),
                            ("passage", "passage"),
                            ("citation", "citation"),
                        ],
                        max_length=10,
                    ),
                ),
                ("question", models.TextField()),
                ("labels", models.JSONField()),
                ("asked_when", models.JSONField(blank=True, null=True)),
                ("position", models.PositiveIntegerField(default=1)),
                (
                    "rubric_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="dimensions",
                        to="annotate.rubricversion",
                    ),
                ),
            ],
            options={
                "ordering": ["rubric_version", "position"],
                "constraints": [
                    models.UniqueConstraint(fields=("rubric_version", "name"), name="dimension_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SecondLookTarget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.claim",
                    ),
                ),
                (
                    "passage",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="evalsets.passage",
                    ),
                ),
                (
                    "response",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="evalsets.response"
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="drawn", to="annotate.round"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", True)),
                        fields=("round", "dimension", "claim"),
                        name="drawn_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", True)),
                        fields=("round", "dimension", "response"),
                        name="drawn_once_per_response",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", False)),
                        fields=("round", "dimension", "passage"),
                        name="drawn_once_per_passage",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", False)),
                        fields=("round", "dimension", "claim", "passage"),
                        name="drawn_once_per_citation",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("total", models.IntegerField()),
                ("done", models.IntegerField()),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tallies",
                        to="annotate.grader",
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tallies",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("round", "grader"), name="tally_once")],
            },
        ),
        migrations.CreateModel(
            name="Unblinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="unblindings",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("round", "person"), name="unblinding_once")],
            },
        ),
        migrations.CreateModel(
            name="WarmUpCase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("dimension", models.CharField(max_length=30)),
                ("question", models.TextField(blank=True)),
                ("passages", models.JSONField(default=list)),
                ("response", models.TextField()),
                ("claim", models.TextField(blank=True)),
                ("label", models.CharField(max_length=30)),
                ("explanation", models.TextField()),
                (
                    "rubric_version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="warm_up_cases",
                        to="annotate.rubricversion",
                    ),
                ),
            ],
            options={
                "ordering": ["rubric_version", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("rubric_version", "position"), name="warm_up_position_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WarmUpAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("label", models.CharField(max_length=30)),
                ("milliseconds", models.PositiveIntegerField(blank=True, null=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "grader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="warm_up_answers",
                        to="annotate.grader",
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="answers",
                        to="annotate.warmupcase",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("case", "grader"), name="warm_up_answer_once")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="adjudication",
            index=models.Index(fields=["round", "dimension", "response"], name="adjudication_by_target"),
        ),
        migrations.AddConstraint(
            model_name="adjudication",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("claim__isnull", False),
                        ("dimension", "grounding"),
                        ("label__in", ("supported", "contradicted", "unsupported", "unverifiable")),
                        ("passage__isnull", True),
                    ),
                    models.Q(
                        ("claim__isnull", True),
                        ("dimension", "abstention"),
                        ("label__in", ("REFUSED", "ANSWERED", "CLARIFY")),
                        ("passage__isnull", True),
                    ),
                    models.Q(
                        models.Q(("dimension__in", ["grounding", "abstention"]), _negated=True),
                        models.Q(("label", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="adjudication_label_fits",
            ),
        ),
        migrations.AddConstraint(
            model_name="adjudication",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("reason", "revoked"), ("revokes__isnull", False)),
                    models.Q(models.Q(("reason", "revoked"), _negated=True), ("revokes__isnull", True)),
                    _connector="OR",
                ),
                name="adjudication_revoked_names_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.UniqueConstraint(fields=("version", "number"), name="round_number_once"),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("overlap__isnull", True), ("overlap_kind", "all")),
                    models.Q(models.Q(("overlap_kind", "all"), _negated=True), ("overlap__isnull", False)),
                    _connector="OR",
                ),
                name="round_overlap_counted",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("overlap_kind", "share"),
                        ("overlap_share__gt", 0),
                        ("overlap_share__isnull", False),
                        ("overlap_share__lte", 1),
                    ),
                    models.Q(
                        models.Q(("overlap_kind", "share"), _negated=True),
                        ("overlap_share__isnull", True),
                        ("stratum", ""),
                    ),
                    _connector="OR",
                ),
                name="round_share_of_a_stratum",
            ),
        ),
        migrations.AddConstraint(
            model_name="round",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "second_look"), ("second_look_of__isnull", False)),
                    models.Q(
                        models.Q(("kind", "second_look"), _negated=True), ("second_look_of__isnull", True)
                    ),
                    _connector="OR",
                ),
                name="round_second_look_of_a_round",
            ),
        ),
    ]
