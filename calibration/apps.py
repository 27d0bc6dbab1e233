from django.apps import AppConfig

from calibration.triggers import report_rules
from evalsets.triggers import keep


class CalibrationConfig(AppConfig):
    name = "calibration"

    def ready(self):
        from calibration.extraction_runs import what_hinders_freezing
        from evalsets.services import hindrances

        keep(self, report_rules)
        hindrances.append(what_hinders_freezing)
