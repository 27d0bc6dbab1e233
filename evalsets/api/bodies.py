"""What a request may send: JSON as strict as in files, a form with a file, or the bare file."""

from tempfile import TemporaryFile

from django.conf import settings
from django.core.files import File
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser

from evalsets.api.problems import Refusal
from evalsets.importing.reading import MEGABYTE
from evalsets.importing.strictjson import NotStrictJSON, parse

ROOM_FOR_THE_FORM = MEGABYTE
SUFFIXES = {
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/gzip": "jsonl.gz",
    "text/csv": "csv",
}


def says_it_is_larger(request, most: int) -> bool:
    """Whether a body is larger, by its own word: known before anything is parsed."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdigit() and int(length) > most


def refuse_too_large(request, most: int) -> None:
    if says_it_is_larger(request, most):
        raise too_large(most)


def too_large(most: int) -> Refusal:
    words = _("The body is larger than the {most} MB that are read.")
    return Refusal(413, "too-large", words.format(most=most // MEGABYTE))


class JSONBody(BaseParser):
    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None):
        refuse_too_large(parser_context["request"], settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        try:
            return parse(stream.read().decode("utf-8-sig"))
        except (NotStrictJSON, UnicodeDecodeError) as error:
            raise ParseError(_("The body is not JSON: {why}").format(why=error)) from error


class FormWithFile(MultiPartParser):
    def parse(self, stream, media_type=None, parser_context=None):
        refuse_too_large(parser_context["request"], settings.IMPORT_MAX_BYTES + ROOM_FOR_THE_FORM)
        return super().parse(stream, media_type, parser_context)


class BareFile(BaseParser):
    """The file itself as the body; what else is to be said stands in the query."""

    def parse(self, stream, media_type=None, parser_context=None):
        most = settings.IMPORT_MAX_BYTES
        refuse_too_large(parser_context["request"], most)
        kept = TemporaryFile()  # noqa: SIM115  (an import reads it twice; it goes with the request)
        while chunk := stream.read(MEGABYTE):
            kept.write(chunk)
            if kept.tell() > most:
                raise too_large(most)
        kept.seek(0)
        return {"file": File(kept, name=f"body.{SUFFIXES[self.media_type]}")}


class NDJSONFile(BareFile):
    media_type = "application/x-ndjson"


class JSONLinesFile(BareFile):
    media_type = "application/jsonl"


class GzipFile(BareFile):
    media_type = "application/gzip"


class CSVFile(BareFile):
    media_type = "text/csv"


FILE_PARSERS = [FormWithFile, NDJSONFile, JSONLinesFile, GzipFile, CSVFile]
