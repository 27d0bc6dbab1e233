import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [
        ("calibration", "0001_initial"),
        ("calibration", "0002_verdict_cache"),
        ("calibration", "0003_verdicts_on_passages"),
        ("calibration", "0004_trust"),
        ("calibration", "0005_calls_limits_prompts"),
        ("calibration", "0006_failure_kinds"),
        ("calibration", "0007_panel_failures"),
        ("calibration", "0008_alerts"),
        ("calibration", "0009_one_page_reports"),
        ("calibration", "0010_extraction_of_claims"),
        ("calibration", "0011_watches"),
        ("calibration", "0012_uploads"),
        ("calibration", "0013_sentinels"),
        ("calibration", "0014_judge_warm_up"),
    ]

    initial = True

    dependencies = [
        ("annotate", "0001_tables"),
        ("auth", "__first__"),
        ("evalsets", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("base_url", models.CharField(max_length=500, unique=True)),
                ("concurrency", models.PositiveIntegerField(blank=True, null=True)),
                ("tokens_per_minute", models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={
                "ordering": ["base_url"],
            },
        ),
        migrations.CreateModel(
            name="WorkerSighting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("stale", "a judge is no longer trusted"),
                            ("sentinel", "a sentinel run has to be looked at"),
                            ("watch", "a watched rate has changed"),
                        ],
                        max_length=20,
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("title", models.CharField(max_length=300)),
                ("text", models.TextField(blank=True)),
                ("link", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                (
                    "acknowledged_by",
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
                        related_name="alerts",
                        to="evalsets.evalset",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="alerts",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("evalset", "key"), name="alert_told_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("acknowledged_at__isnull", True), ("acknowledged_by__isnull", True)),
                            models.Q(("acknowledged_at__isnull", False), ("acknowledged_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="alert_acknowledged_by_somebody",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "channel",
                    models.CharField(choices=[("webhook", "webhook"), ("email", "e-mail")], max_length=10),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "waiting"),
                            ("claimed", "under way"),
                            ("sent", "sent"),
                            ("failed", "given up"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("message_id", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("not_before", models.DateTimeField(blank=True, null=True)),
                ("claim_token", models.UUIDField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("detail", models.TextField(blank=True)),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deliveries",
                        to="calibration.alert",
                    ),
                ),
                (
                    "person",
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
                "ordering": ["pk"],
                "indexes": [models.Index(fields=["state", "not_before"], name="delivery_due")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("channel", "webhook")),
                        fields=("alert",),
                        name="delivery_one_webhook",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("channel", "email")),
                        fields=("alert", "person"),
                        name="delivery_one_email_each",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("channel", "webhook"), ("person__isnull", True)),
                            models.Q(("channel", "email"), ("person__isnull", False)),
                            _connector="OR",
                        ),
                        name="delivery_has_its_addressee",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CalibrationSplit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "design",
                    models.CharField(
                        choices=[
                            ("random", "a random share of the judged pool"),
                            ("stratified", "a random share within each stratum"),
                            ("enriched", "enriched: rare cases were sought"),
                            ("imported", "imported with the data"),
                        ],
                        max_length=12,
                    ),
                ),
                ("stratum", models.CharField(blank=True, max_length=200)),
                ("tuning_share", models.FloatField(default=0.0)),
                ("seed", models.BigIntegerField()),
                ("few_shot", models.JSONField(blank=True, default=list)),
                ("note", models.TextField(blank=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
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
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calibration_splits",
                        to="annotate.round",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("tuning_share__gte", 0), ("tuning_share__lt", 1)),
                        name="tuning_share_leaves_calibration",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("design", "stratified"), models.Q(("stratum", ""), _negated=True)),
                            models.Q(("design", "stratified"), _negated=True),
                            _connector="OR",
                        ),
                        name="stratified_names_its_stratum",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GateThresholds",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("thresholds", models.JSONField(default=dict)),
                ("reason", models.TextField()),
                ("at", models.DateTimeField(auto_now_add=True)),
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
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="thresholds",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Judge",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("openai", "LLM behind an OpenAI-compatible address"),
                            ("lexical-baseline", "lexical baseline"),
                            ("phrase-matcher", "phrase matcher"),
                            ("trained-baseline", "trained baseline"),
                            ("majority-label", "majority label"),
                            ("panel", "panel of judges"),
                            ("imported", "imported verdicts"),
                        ],
                        max_length=20,
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=300)),
                ("provider", models.CharField(blank=True, max_length=300)),
                ("family", models.CharField(blank=True, max_length=300)),
                ("base_url", models.CharField(blank=True, max_length=500)),
                ("api_key_variable", models.CharField(blank=True, max_length=100)),
                ("prompt_version", models.CharField(blank=True, max_length=50)),
                ("parameters", models.JSONField(blank=True, default=dict)),
                ("prices", models.JSONField(blank=True, default=dict)),
                ("is_active", models.BooleanField(default=True)),
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
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judges",
                        to="evalsets.evalset",
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "pk"],
                "constraints": [models.UniqueConstraint(fields=("evalset", "name"), name="judge_name_once")],
            },
        ),
        migrations.CreateModel(
            name="JudgeRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("budget_calls", models.PositiveBigIntegerField(blank=True, null=True)),
                ("budget_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                ("budget_money", models.DecimalField(blank=True, decimal_places=6, max_digits=14, null=True)),
                (
                    "purpose",
                    models.CharField(
                        choices=[("judging", "judging"), ("extraction", "extracting claims")],
                        default="judging",
                        max_length=10,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "origin",
                    models.CharField(
                        choices=[("run", "run here"), ("imported", "imported")], default="run", max_length=10
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("running", "running"), ("stopped", "stopped"), ("complete", "complete")],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("dimensions", models.JSONField(default=list)),
                ("repeats", models.PositiveSmallIntegerField(default=1)),
                ("requested", models.JSONField(default=dict)),
                ("requested_fingerprint", models.CharField(blank=True, max_length=64)),
                ("use_cache", models.BooleanField(default=True)),
                ("prices", models.JSONField(blank=True, default=dict)),
                (
                    "stop_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("asked", "somebody stopped it"),
                            ("breaker", "its calls all failed alike"),
                            ("budget", "its budget is used up"),
                        ],
                        max_length=10,
                    ),
                ),
                ("stop_detail", models.TextField(blank=True)),
                ("resumed_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("policy", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
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
                    "endpoint",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="calibration.endpoint",
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="calibration.judge",
                    ),
                ),
                (
                    "rubric_version",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_runs",
                        to="annotate.rubricversion",
                    ),
                ),
                ("system_runs", models.ManyToManyField(related_name="judge_runs", to="evalsets.systemrun")),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_runs",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "number"],
                "default_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="GoldDoubt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("gold", models.CharField(max_length=30)),
                ("verdict", models.CharField(max_length=30)),
                ("note", models.TextField(blank=True)),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="doubts",
                        to="annotate.round",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="doubts",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", True)),
                        fields=("run", "round", "dimension", "claim"),
                        name="doubt_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", True)),
                        fields=("run", "round", "dimension", "response"),
                        name="doubt_once_per_response",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", False)),
                        fields=("run", "round", "dimension", "passage"),
                        name="doubt_once_per_passage",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", False)),
                        fields=("run", "round", "dimension", "claim", "passage"),
                        name="doubt_once_per_citation",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DriftFinding",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("alarms", models.JSONField(default=list)),
                ("payload", models.JSONField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="annotate.round"
                    ),
                ),
                (
                    "judge_run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="findings",
                        to="calibration.judgerun",
                    ),
                ),
                (
                    "observed",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("judge_run", "observed", "round", "dimension"), name="drift_finding_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CalibrationReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("number", models.PositiveIntegerField()),
                ("gate_state", models.CharField(max_length=20)),
                ("payload", models.JSONField()),
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
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reports",
                        to="annotate.round",
                    ),
                ),
                (
                    "judge_run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reports",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "ordering": ["judge_run", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("judge_run", "number"), name="report_number_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="PromptVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("system", models.TextField()),
                ("methods", models.JSONField()),
                ("closing", models.TextField()),
                ("note", models.TextField(blank=True)),
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
                    "evalset",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="prompt_versions",
                        to="evalsets.evalset",
                    ),
                ),
            ],
            options={
                "ordering": ["evalset", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("evalset", "number"), name="prompt_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 2)), name="prompt_number_after_built_in"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SentinelPlan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("budget_calls", models.PositiveBigIntegerField(blank=True, null=True)),
                ("budget_tokens", models.PositiveBigIntegerField(blank=True, null=True)),
                ("budget_money", models.DecimalField(blank=True, decimal_places=6, max_digits=14, null=True)),
                ("verdicts", models.JSONField()),
                ("seed", models.BigIntegerField()),
                ("every_days", models.PositiveSmallIntegerField()),
                ("is_active", models.BooleanField(default=True)),
                ("next_at", models.DateTimeField()),
                ("problem", models.TextField(blank=True)),
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
                    "judge_run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sentinel_plans",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("is_active", True)),
                        fields=("judge_run",),
                        name="sentinel_one_plan_holds",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("every_days__gte", 1)), name="sentinel_every_day_at_most"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="judgerun",
            name="sentinel_plan",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="calibration.sentinelplan",
            ),
        ),
        migrations.CreateModel(
            name="Summary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("payload", models.JSONField()),
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
                    "round",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="summaries",
                        to="annotate.round",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="summaries",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["version", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("version", "number"), name="summary_number_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=200)),
                ("file", models.FileField(upload_to="uploads")),
                ("filename", models.CharField(max_length=255)),
                ("size", models.PositiveBigIntegerField()),
                ("with_labels", models.BooleanField(default=False)),
                ("mapping", models.JSONField(blank=True, null=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("mapping", "waits for its columns"),
                            ("queued", "waits for a worker"),
                            ("running", "being imported"),
                            ("done", "imported"),
                            ("refused", "refused"),
                            ("failed", "failed"),
                        ],
                        max_length=10,
                    ),
                ),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("problems", models.JSONField(blank=True, default=list)),
                ("problems_left_out", models.PositiveIntegerField(default=0)),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "into",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uploads",
                        to="evalsets.evalsetversion",
                    ),
                ),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="uploads",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "result",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="made_by_uploads",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("result__isnull", False), ("state", "done")),
                            models.Q(("state", "done"), _negated=True),
                            _connector="OR",
                        ),
                        name="upload_done_names_its_version",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("run_index", models.PositiveSmallIntegerField(default=1)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("claimed", "under way"),
                            ("valid", "valid"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=30)),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
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
                            ("cancelled", "cancelled before it was asked"),
                            ("internal", "internal error"),
                        ],
                        max_length=16,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("raw_output", models.TextField(blank=True)),
                ("resolved_model", models.CharField(blank=True, max_length=300)),
                ("effective_parameters", models.JSONField(default=dict)),
                ("input_sha256", models.CharField(blank=True, max_length=64)),
                ("from_cache", models.BooleanField(default=False)),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("milliseconds", models.PositiveIntegerField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("claim_token", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("not_before", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField(auto_now=True)),
                (
                    "claim",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
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
                        related_name="verdicts",
                        to="evalsets.response",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run", "state"], name="verdict_by_state"),
                    models.Index(fields=["state", "lease_until"], name="verdict_sweep"),
                    models.Index(fields=["input_sha256"], name="verdict_cache"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", True)),
                        fields=("run", "dimension", "run_index", "claim"),
                        name="verdict_once_per_claim",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", True)),
                        fields=("run", "dimension", "run_index", "response"),
                        name="verdict_once_per_response",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", True), ("passage__isnull", False)),
                        fields=("run", "dimension", "run_index", "passage"),
                        name="verdict_once_per_passage",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("claim__isnull", False), ("passage__isnull", False)),
                        fields=("run", "dimension", "run_index", "claim", "passage"),
                        name="verdict_once_per_citation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("claim__isnull", False),
                                ("dimension", "grounding"),
                                (
                                    "label__in",
                                    ("", "supported", "contradicted", "unsupported", "unverifiable"),
                                ),
                                ("passage__isnull", True),
                            ),
                            models.Q(
                                ("claim__isnull", True),
                                ("dimension", "abstention"),
                                ("label__in", ("", "REFUSED", "ANSWERED", "CLARIFY")),
                                ("passage__isnull", True),
                            ),
                            models.Q(("dimension__in", ["grounding", "abstention"]), _negated=True),
                            _connector="OR",
                        ),
                        name="verdict_label_fits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("failure", ""), ("state", "valid"), models.Q(("label", ""), _negated=True)
                            ),
                            models.Q(
                                ("label", ""), ("state", "failed"), models.Q(("failure", ""), _negated=True)
                            ),
                            models.Q(("failure", ""), ("label", ""), ("state__in", ["pending", "claimed"])),
                            _connector="OR",
                        ),
                        name="verdict_label_or_failure",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Call",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
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
                            ("cancelled", "cancelled before it was asked"),
                            ("internal", "internal error"),
                        ],
                        max_length=16,
                    ),
                ),
                ("finish_reason", models.CharField(blank=True, max_length=50)),
                ("request", models.TextField(blank=True)),
                ("reply", models.TextField(blank=True)),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("reasoning_tokens", models.PositiveIntegerField(null=True)),
                ("milliseconds", models.PositiveIntegerField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="calibration.judgerun",
                    ),
                ),
                (
                    "verdict",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="calls",
                        to="calibration.verdict",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["run", "at"], name="call_of_run"),
                    models.Index(fields=["at"], name="call_by_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="VerdictSighting",
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
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="sightings",
                        to="calibration.judgerun",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [models.UniqueConstraint(fields=("run", "person"), name="sighting_once")],
            },
        ),
        migrations.CreateModel(
            name="WarmUpVerdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("claimed", "under way"),
                            ("valid", "valid"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=8,
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=30)),
                (
                    "failure",
                    models.CharField(
                        blank=True,
                        choices=[
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
                            ("cancelled", "cancelled before it was asked"),
                            ("internal", "internal error"),
                        ],
                        max_length=16,
                    ),
                ),
                ("detail", models.TextField(blank=True)),
                ("raw_output", models.TextField(blank=True)),
                ("prompt_tokens", models.PositiveIntegerField(null=True)),
                ("completion_tokens", models.PositiveIntegerField(null=True)),
                ("claim_token", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("asked_at", models.DateTimeField(auto_now_add=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="annotate.warmupcase",
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="warm_up_verdicts",
                        to="calibration.judge",
                    ),
                ),
            ],
            options={
                "ordering": ["case__position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("judge", "case", "fingerprint"), name="warm_up_verdict_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("failure", ""), ("state", "valid"), models.Q(("label", ""), _negated=True)
                            ),
                            models.Q(
                                ("label", ""), ("state", "failed"), models.Q(("failure", ""), _negated=True)
                            ),
                            models.Q(("failure", ""), ("label", ""), ("state__in", ["pending", "claimed"])),
                            _connector="OR",
                        ),
                        name="warm_up_verdict_label_or_failure",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Watch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=60, unique=True)),
                ("minimum", models.FloatField(default=0.05)),
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
                    "judge",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watches",
                        to="calibration.judge",
                    ),
                ),
                (
                    "material",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watch",
                        to="evalsets.evalset",
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watches",
                        to="evalsets.evalsetversion",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("minimum__gt", 0), ("minimum__lt", 1)),
                        name="watch_minimum_is_share",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WatchBatch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("date", models.DateField()),
                ("file_sha256", models.CharField(max_length=64)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
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
                    "material",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watch_batch",
                        to="evalsets.evalsetversion",
                    ),
                ),
                (
                    "watch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="batches",
                        to="calibration.watch",
                    ),
                ),
            ],
            options={
                "ordering": ["watch", "date"],
                "constraints": [
                    models.UniqueConstraint(fields=("watch", "date"), name="watch_one_batch_a_day")
                ],
            },
        ),
        migrations.CreateModel(
            name="WatchJudging",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("dimension", models.CharField(max_length=30)),
                ("gate_state", models.CharField(max_length=20)),
                ("reason", models.TextField(blank=True)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judgings",
                        to="calibration.watchbatch",
                    ),
                ),
                (
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="calibration.judge"
                    ),
                ),
                (
                    "judge_run",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="watch_judgings",
                        to="calibration.judgerun",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="calibration.calibrationreport",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("judge_run__isnull", False), ("reason", "")),
                            models.Q(("judge_run__isnull", True), models.Q(("reason", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="watch_judged_or_says_why",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WatchMark",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("date", models.DateField()),
                ("text", models.CharField(max_length=200)),
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
                    "watch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="marks",
                        to="calibration.watch",
                    ),
                ),
            ],
            options={
                "ordering": ["date", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("watch", "date", "text"), name="watch_mark_once")
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="judgerun",
            constraint=models.UniqueConstraint(
                fields=("version", "purpose", "number"), name="judge_run_number_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgerun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("origin", "imported"), ("requested_fingerprint", "")),
                    models.Q(("origin", "run"), models.Q(("requested_fingerprint", ""), _negated=True)),
                    _connector="OR",
                ),
                name="judge_run_has_fingerprint_unless_imported",
            ),
        ),
    ]
