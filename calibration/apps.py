from django.apps import AppConfig

from calibration.triggers import report_rules
from evalsets.triggers import keep


class CalibrationConfig(AppConfig):
    name = "calibration"

    def ready(self):
        keep(self, report_rules)
