"""The gold set in the formats of its export, and the native file of a version: streamed."""

from django.http import FileResponse, Http404
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import gold_serializers as serializers
from calibration import goldfile
from calibration.api.figures import round_asked_for
from calibration.api.files import given_file
from calibration.gold_compare import compare_gold
from calibration.gold_export import gold_file, gold_overview, zipped_gold
from calibration.gold_given import gold_in_file
from calibration.gold_reimport import changes_on, listed, take_over
from calibration.scope import GoldForm
from calibration.views.exchange import native_file
from evalsets.api.base import ApiView, Scope, once_after
from evalsets.api.bodies import FILE_PARSERS
from evalsets.api.problems import Refusal
from evalsets.api.schema import BYTES
from evalsets.services import limits

TAG = "gold"
ZIP = "gold.zip"
TYPES = {
    goldfile.MANIFEST: "application/json",
    goldfile.GOLD: "application/x-ndjson",
    goldfile.UNRESOLVED: "application/x-ndjson",
    goldfile.CSV: "text/csv; charset=utf-8",
    goldfile.PARQUET: "application/vnd.apache.parquet",
    goldfile.CARD: "text/markdown; charset=utf-8",
    ZIP: "application/zip",
}
PLAIN_TYPES = dict.fromkeys(kind.partition(";")[0] for kind in TYPES.values())


class Whatever(DefaultContentNegotiation):
    """A file is what it is, whatever the client would rather have; errors stay JSON."""

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class Gold(ApiView):
    """What the gold set of a round holds, and what is missing."""

    tag = TAG
    asks = {"GET": serializers.RoundQuery}
    answers = {"GET": {200: {"type": "object", "additionalProperties": True}}}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        round = round_asked_for(version, self.asked.get("round"))
        if round is None:
            raise Http404
        return Response({"round": round.number} | gold_overview(version=version, round=round))


class GoldFile(ApiView):
    """A file of the export: manifest.json, gold.jsonl, gold.csv, gold.parquet, unresolved.jsonl, README.md.

    Or gold.zip, which has them all. Files of one state of the labels and one choice belong together: the
    manifest names the hash of each. A choice moves no figure: what it leaves out stands in unresolved.jsonl.
    """

    tag, reads = TAG, Scope.GOLD
    content_negotiation_class = Whatever
    asks = {"GET": serializers.GoldQuery}
    answers = {
        "GET": {
            (200, "application/json"): {"type": "object", "additionalProperties": True},
            (200, *(kind for kind in PLAIN_TYPES if kind != "application/json")): BYTES,
        }
    }

    def get(self, request, slug, number, file):
        version = labels_of(request.user, slug, number)
        round = round_asked_for(version, self.asked.get("round"))
        if round is None or file not in TYPES:
            raise Http404
        form = GoldForm(request.query_params, version=version, round=round)
        if not form.is_valid():
            raise Refusal.of_form(form)
        scope = {"version": version, "round": round, "choice": form.choice}
        opened = zipped_gold(**scope) if file == ZIP else gold_file(**scope, name=file)
        name = file
        if file.startswith("gold."):
            name = f"gold-{slug}-{number}-round-{round.number}{file.removeprefix('gold')}"
        return FileResponse(opened, as_attachment=True, filename=name, content_type=TYPES[file])


class EditedGold(BehindTheDoor):
    """What changed in an edited gold set. With `take_over` the changes become decisions of the log.

    Without `lines`: all that `can_be_taken`. All of these or none: one that fails is told with its line.
    """

    tag, reads, writes = TAG, Scope.ROUNDS, Scope.ROUNDS
    parser_classes = FILE_PARSERS
    asks = {"POST": serializers.EditedGoldQuery}
    takes = {"POST": serializers.EditedGold}
    answers = {"POST": {200: serializers.ComparedGold, 201: serializers.ComparedGold}}

    def read(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = given_file(self, request, serializers.EditedGold)
        with gold_in_file(given.pop("stream"), given.pop("filename"), limits()) as gold:
            found = compare_gold(given=gold, version=version, round_number=given.pop("round", None))
        return {"found": found, "given": given}

    @once_after(read)
    def post(self, request, slug, number, found, given):
        told = listed(found) | {"taken": 0}
        if not given.get("take_over"):
            return Response(told)
        made = take_over(
            round=found.round,
            changes=changes_on(found, given.get("lines")),
            origin=found.origin,
            note=given.get("note", ""),
            judge_seen=given["judge_seen"],
            person=request.user,
        )
        return Response(told | {"taken": len(made)}, status=201)


class Export(ApiView):
    """The native file again: to import it gives the same content hash."""

    tag, reads = "files", Scope.GOLD
    content_negotiation_class = Whatever
    asks = {"GET": serializers.ExportQuery}
    answers = {"GET": {(200, "application/x-ndjson"): BYTES}}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        return native_file(version=version, person=request.user, with_labels=self.asked.get("labels", False))
