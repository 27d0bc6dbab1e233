from django.apps import AppConfig

from annotate.triggers import history_rules, keep_tallies
from evalsets.triggers import keep


class AnnotateConfig(AppConfig):
    name = "annotate"

    def ready(self):
        keep(self, history_rules)
        keep_tallies(self)
