from django.apps import AppConfig

from evalsets.triggers import frozen_rules, keep


class EvalsetsConfig(AppConfig):
    name = "evalsets"

    def ready(self):
        keep(self, frozen_rules)
