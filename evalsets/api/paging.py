"""Lists a page at a time, with links. What cannot be a page is an error and not the first page."""

from django.core.paginator import InvalidPage
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination, PageNumberPagination

from evalsets.fields import Text, Whole

MOST = 500
USUAL = 50
LARGEST = 2**31 - 1


class PageSize(serializers.Serializer):
    page_size = Whole(min_value=1, max_value=MOST, required=False)


class AskedCursor(PageSize):
    cursor = Text(required=False, max_length=1000, help_text="As in the links `next` and `previous`.")


class AskedPage(PageSize):
    page = Whole(min_value=1, max_value=LARGEST, required=False)


class CursorPages(CursorPagination):
    """For rows in the order of a whole number that only grows: stable while rows are added."""

    asked = AskedCursor
    page_size, page_size_query_param, max_page_size = USUAL, "page_size", MOST

    def get_ordering(self, request, queryset, view):
        return (view.ordering,)

    def decode_cursor(self, request):
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            position = cursor.position
            if not (position.isascii() and position.isdigit() and len(position) < 19):
                raise NotFound(self.invalid_cursor_message)
        return cursor


class NumberedPages(PageNumberPagination):
    """For lists that are counted anyway."""

    asked = AskedPage
    page_size, page_size_query_param, max_page_size = USUAL, "page_size", MOST

    def paginate_queryset(self, queryset, request, view=None):
        try:
            return super().paginate_queryset(queryset, request, view)
        except InvalidPage as error:
            raise NotFound(_("There is no such page.")) from error
