"""For staff to look at, and to say who belongs where. Nothing that is evaluated is changed here."""

from django.contrib import admin

from evalsets.models import (
    Claim,
    EvalSet,
    EvalSetVersion,
    Item,
    Membership,
    Passage,
    Response,
    System,
    SystemRun,
)


class ReadOnly(admin.ModelAdmin):
    """To look at only. The long texts and the JSON of a row are on its own page, not in the list."""

    show_full_result_count = False

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


@admin.register(EvalSet)
class EvalSetAdmin(ReadOnly):
    list_display = ["name", "slug", "is_example", "created_at"]
    search_fields = ["name", "slug"]


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):
    list_display = ["evalset", "person", "role", "created_at"]
    list_filter = ["role"]
    list_select_related = ["evalset", "person"]
    autocomplete_fields = ["person"]


@admin.register(EvalSetVersion)
class EvalSetVersionAdmin(ReadOnly):
    list_display = ["__str__", "state", "frozen_at", "content_hash"]
    list_filter = ["state"]
    list_select_related = ["evalset"]


@admin.register(Item)
class ItemAdmin(ReadOnly):
    list_display = ["item_id", "version", "answerable", "unanswerable_reason"]
    list_select_related = ["version__evalset"]
    search_fields = ["item_id"]
    exclude = ["extra"]  # may hold labels that came with the file, under `original`


@admin.register(System)
class SystemAdmin(ReadOnly):
    list_display = ["__str__", "evalset", "model", "provider", "date"]
    list_select_related = ["evalset"]


@admin.register(SystemRun)
class SystemRunAdmin(ReadOnly):
    list_display = ["__str__", "version", "state", "frozen_at", "content_hash"]
    list_filter = ["state"]
    list_select_related = ["version__evalset", "system"]


@admin.register(Response)
class ResponseAdmin(ReadOnly):
    list_display = ["response_id", "run", "item", "sample"]
    list_select_related = ["run__system", "item"]
    search_fields = ["response_id"]
    exclude = ["extra"]


@admin.register(Passage)
class PassageAdmin(ReadOnly):
    list_display = ["passage_id", "response", "rank"]
    list_select_related = ["response"]


@admin.register(Claim)
class ClaimAdmin(ReadOnly):
    list_display = ["claim_id", "response", "parent", "position"]
    list_select_related = ["response", "parent"]
    exclude = ["extra"]
