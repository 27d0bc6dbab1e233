"""A graded and judged eval set of any size, written by the database itself from one table of targets.

Two systems answer every item, two graders label everything, three judges have verdicts on all of it; where
the graders differ, most is decided. Labels follow from the ids: every run and both databases have the same.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import connection, models, transaction

from evalsets.labels import ABSTENTION, GROUNDING, UNANSWERABLE_REASONS

SLUG = "leading"
LEAD = "lead"
CLAIMS, PASSAGES = 5, 3  # of a response
GRADERS = {"ada": 940, "ben": 920}  # how often of a thousand each says what is so
JUDGES = {"alpha": 960, "beta": 880, "gamma": 700}
DECIDED = 800  # of a thousand disagreements
FAILED = 4  # of a thousand verdicts
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
WORDS = (
    "the ferry to the island departs from the western pier every morning and returns late in the evening "
    "unless the weather closes the harbour, in which case a ticket is refunded at the office on the quay "
) * 12
EXPECTED = """'["{0}1", "{0}5"]'"""
MULTIPLIERS = (48271, 69621, 39373, 16807, 40692, 40014, 45991, 41358, 52774, 42024)


def build(responses: int) -> None:
    """All but the reports about the judges: those are built by whoever measures that."""
    with transaction.atomic():
        _rows(responses)
    _finish()


def _rows(responses: int) -> None:
    from annotate.models import Annotation, Assignment, GoldLabel, Round

    _check_keys(False)
    version, runs = _contents(responses)
    _check_keys(True)  # and let the triggers work that count assignments
    graders = _people(version.evalset)
    rubric_version = _rubric(version.evalset)
    round = Round.objects.create(
        version=version, number=1, rubric_version=rubric_version, graders_each=2, state="closed"
    )
    round.runs.set(runs)
    _targets(responses)
    for slot, grader in enumerate(graders.values(), start=1):
        _fill(
            Assignment,
            "evalsets_response r WHERE r.text <> ''",
            round=round.pk,
            response="r.id",
            grader=grader.pk,
            slot=slot,
            order="r.id",
            state="'done'",
            done_at="%(now)s",
        )
    _check_keys(False)
    for name, grader in graders.items():
        _fill(
            Annotation,
            "bench_target t",
            round=round.pk,
            grader=grader.pk,
            **TARGET,
            label=_label(name),
            milliseconds="4000",
            note=f"CASE WHEN {_hash('t.n', 8)} < 10 THEN 'the text leaves it open' ELSE '' END",
        )
    _fill(
        GoldLabel, "bench_target t WHERE t.ada = t.ben", round=round.pk, **TARGET,
        label=_label("ada"), source="'agreed'",
    )  # fmt: skip
    _decisions(round)
    for name in JUDGES:
        _judge(version, runs, rubric_version, name)


TARGET = {"response": "t.response", "claim": "t.claim", "dimension": "t.dimension"}


def _contents(responses: int):
    from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Passage, Response, System, SystemRun

    evalset = EvalSet.objects.create(slug=SLUG, name="Leading")
    version = EvalSetVersion.objects.create(evalset=evalset, number=1)
    runs = []
    for number in (1, 2):
        system = System.objects.create(evalset=evalset, name=f"system {number}", fingerprint=f"{number}" * 64)
        runs.append(SystemRun.objects.create(version=version, system=system, number=number))
    items = responses // 2
    _numbers(responses * CLAIMS)
    kind, n = _hash("n.i", 0), "CAST(n.i AS TEXT)"
    topics = " ".join(f"WHEN {k} THEN 'topic {k}'" for k in range(8))
    reason = " ".join(f"WHEN {k} THEN '{reason}'" for k, reason in enumerate(UNANSWERABLE_REASONS))
    _fill(
        Item,
        f"bench_number n WHERE n.i <= {items}",
        id="n.i",
        version=version.pk,
        position="n.i",
        item_id=f"'item ' || {n}",
        question=f"'Question ' || {n} || ': ' || {_words('70')}",
        strata=_json(
            f"""'{{"difficulty": "' || CASE n.i %% 3 WHEN 0 THEN 'easy' WHEN 1 THEN 'middling' ELSE 'hard' END
            || '", "topic": "' || CASE n.i %% 8 {topics} END || '"}}'"""
        ),
        answerable=f"({kind} >= 150)",
        unanswerable_reason=f"CASE WHEN {kind} >= 150 THEN '' ELSE CASE {kind} %% "
        f"{len(UNANSWERABLE_REASONS)} {reason} END END",
        expected_documents=f"CASE WHEN n.i %% 2 = 0 THEN {_json(EXPECTED.format('d'))} END",
        expected_passages=f"CASE WHEN n.i %% 2 = 0 THEN {_json(EXPECTED.format('p'))} END",
    )
    _fill(
        Response,
        f"bench_number n WHERE n.i <= {responses}",
        id="n.i",
        version=version.pk,
        run=f"CASE WHEN n.i <= {items} THEN {runs[0].pk} ELSE {runs[1].pk} END",
        item=f"(n.i - 1) %% {items} + 1",
        position="n.i",
        response_id=f"'response ' || {n}",
        text=f"CASE WHEN n.i %% 500 = 0 THEN '' ELSE {_words('400 + n.i %% 300')} END",
    )
    of = f"(n.i - 1) / {CLAIMS} + 1"
    _fill(
        Claim,
        f"bench_number n WHERE ({of}) %% 500 <> 0",
        id="n.i",
        response=of,
        position=f"(n.i - 1) %% {CLAIMS} + 1",
        claim_id=f"'c' || CAST((n.i - 1) %% {CLAIMS} + 1 AS TEXT)",
        text=_words("90"),
        source_ids=_json("""'["p1"]'"""),
        decision="(n.i %% 5 = 0)",
    )
    of = f"(n.i - 1) / {PASSAGES} + 1"
    place = f"(n.i - 1) %% {PASSAGES} + 1"
    _fill(
        Passage,
        f"bench_number n WHERE n.i <= {responses * PASSAGES}",
        id="n.i",
        response=of,
        rank=place,
        passage_id=f"'p' || CAST({place} AS TEXT)",
        document=f"'d' || CAST({place} AS TEXT)",
        title="'A timetable'",
        text=_words("300"),
    )
    for row in (version, *runs):
        row.state, row.content_hash, row.frozen_at = "frozen", "f" * 64, NOW
        row.save()
    return version, runs


def _people(evalset) -> dict:
    from django.contrib.auth import get_user_model

    from annotate import services
    from evalsets.models import Membership

    lead = get_user_model().objects.create(username=LEAD)
    Membership.objects.create(person=lead, evalset=evalset, role=Membership.Role.LEAD)
    graders = {}
    for name in GRADERS:
        person = get_user_model().objects.create(username=name)
        Membership.objects.create(person=person, evalset=evalset, role=Membership.Role.GRADER)
        graders[name] = services.ensure_grader(evalset=evalset, name=name, person=person)
    return graders


def _rubric(evalset):
    from annotate import services

    return services.rubric_v1(evalset=evalset)


def _targets(responses: int) -> None:
    """What is so, and what each rater says of it, as positions in the label set."""
    share = _hash("c.id", 1)
    truth = f"CASE WHEN {share} < 620 THEN 0 WHEN {share} < 740 THEN 1 WHEN {share} < 860 THEN 2 ELSE 3 END"
    share = _hash("r.id", 2)
    verdict = (
        f"CASE WHEN i.answerable THEN CASE WHEN {share} < 920 THEN 1 WHEN {share} < 980 THEN 0 ELSE 2 END "
        f"ELSE CASE WHEN {share} < 750 THEN 0 ELSE 1 END END"
    )
    claims = responses * CLAIMS
    said = ", ".join(
        f"CASE WHEN {_hash('n', k)} < {right} THEN truth "
        f"ELSE (truth + 1 + {_hash('n', k)} %% (labels - 1)) %% labels END AS {name}"
        for k, (name, right) in enumerate({**GRADERS, **JUDGES}.items(), start=3)
    )
    _execute(
        f"CREATE TEMPORARY TABLE bench_target AS SELECT n, dimension, response, claim, truth, {said} FROM ("
        f"SELECT c.id AS n, 'grounding' AS dimension, c.response_id AS response, c.id AS claim, "
        f"{truth} AS truth, {len(GROUNDING)} AS labels FROM evalsets_claim c UNION ALL "
        f"SELECT {claims} + r.id, 'abstention', r.id, NULL, {verdict}, {len(ABSTENTION)} "
        f"FROM evalsets_response r JOIN evalsets_item i ON i.id = r.item_id WHERE r.text <> '') AS what"
    )


def _decisions(round) -> None:
    from django.contrib.auth import get_user_model

    from annotate.models import Adjudication, GoldLabel

    lead = get_user_model().objects.get(username=LEAD)
    _fill(
        Adjudication,
        f"bench_target t WHERE t.ada <> t.ben AND {_hash('t.n', 9)} < {DECIDED}",
        round=round.pk,
        **TARGET,
        label=_label("truth"),
        reason="'annotator_error'",
        by=lead.pk,
        at="%(now)s",
    )
    _fill(
        GoldLabel,
        "annotate_adjudication t",
        round=round.pk,
        response="t.response_id",
        claim="t.claim_id",
        dimension="t.dimension",
        label="t.label",
        source="'adjudicated'",
        adjudication="t.id",
    )


def _judge(version, runs, rubric_version, name: str) -> None:
    from calibration.models import Judge, JudgeRun, Verdict
    from calibration.services import add_judge, fingerprint_of, requested_of
    from calibration.thresholds import policy_in_force

    judge: Judge = add_judge(
        evalset=version.evalset, name=name, model=f"model-{name}", base_url="http://127.0.0.1:9/v1"
    )
    requested = requested_of(judge, rubric_version)
    run = JudgeRun.objects.create(
        judge=judge,
        version=version,
        number=list(JUDGES).index(name) + 1,
        state=JudgeRun.State.COMPLETE,
        rubric_version=rubric_version,
        dimensions=["grounding", "abstention"],
        requested=requested,
        requested_fingerprint=fingerprint_of(requested),
        policy=policy_in_force(version).as_dict(),
    )
    JudgeRun.objects.filter(pk=run.pk).update(finished_at=models.F("created_at"))
    run.system_runs.set(runs)
    fails = f"{_hash('t.n', list(JUDGES).index(name))} < {FAILED}"
    _fill(
        Verdict,
        "bench_target t",
        run=run.pk,
        **TARGET,
        state=f"CASE WHEN {fails} THEN 'failed' ELSE 'valid' END",
        label=f"CASE WHEN {fails} THEN '' ELSE {_label(name)} END",
        failure=f"CASE WHEN {fails} THEN 'timeout' ELSE '' END",
        raw_output=f"""'{{"reason": "it says so", "label": "' || {_label(name)} || '"}}'""",
        resolved_model=f"'model-{name}-1'",
        prompt_tokens="600",
        completion_tokens="20",
        milliseconds="900",
        attempts="1",
    )


# SQL


def _label(rater: str) -> str:
    def word(labels: Iterable[str]) -> str:
        return (
            f"CASE t.{rater} " + " ".join(f"WHEN {k} THEN '{one}'" for k, one in enumerate(labels)) + " END"
        )

    return f"CASE t.dimension WHEN 'grounding' THEN {word(GROUNDING)} ELSE {word(ABSTENTION)} END"


def _words(length: str) -> str:
    return f"substr(%(words)s, CAST(1 + n.i %% 90 AS integer), CAST({length} AS integer))"


def _hash(number: str, which: int) -> str:
    """From 0 to 999, evenly; another `which` has nothing to do with it."""
    return f"((({number}) * {MULTIPLIERS[which]} + 7 * {which}) %% 2147483647 %% 1000)"


def _json(text: str) -> str:
    return f"CAST({text} AS jsonb)" if connection.vendor == "postgresql" else f"({text})"


def _numbers(up_to: int) -> None:
    _execute("CREATE TEMPORARY TABLE bench_number (i bigint PRIMARY KEY)")
    _execute(
        "INSERT INTO bench_number WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        f"WHERE i < {up_to}) SELECT i FROM n"
    )


def _fill(model: type[models.Model], source: str, /, **columns: object) -> None:
    """Rows of a model from a source; what is not named gets the field's own default."""
    names, values, more = [], [], {"now": _moment(), "words": WORDS}
    for field in model._meta.concrete_fields:
        if field.name in columns:
            value = str(columns[field.name])
        elif field.primary_key or field.null:
            continue
        elif getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
            value = "%(now)s"
        else:
            value = f"%({field.column})s"
            more[field.column] = field.get_db_prep_save(field.get_default(), connection)
        names.append(f'"{field.column}"')
        values.append(value)
    _execute(
        f"INSERT INTO {model._meta.db_table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {source}",
        more,
    )


def _check_keys(wanted: bool) -> None:
    """PostgreSQL would look up every foreign key, and there are millions of them."""
    if connection.vendor == "postgresql":
        _execute(f"SET LOCAL session_replication_role = {'origin' if wanted else 'replica'}")


def _moment():
    field = models.DateTimeField()
    return field.get_db_prep_save(NOW, connection)


def _execute(statement: str, values: dict | None = None) -> None:
    used = {name: value for name, value in (values or {}).items() if f"%({name})s" in statement}
    with connection.cursor() as cursor:
        cursor.execute(statement if used else statement.replace("%%", "%"), used or None)


def _finish() -> None:
    """What a server in use has done long ago: sequences behind the ids, statistics for the planner."""
    from django.apps import apps
    from django.core.management.color import no_style

    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), apps.get_models()):
            cursor.execute(statement)
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
