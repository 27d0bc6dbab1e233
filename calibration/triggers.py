from evalsets.triggers import append_only


def report_rules():
    return append_only(
        "calibration_calibrationreport",
        "calibration_summary",
        "calibration_watchjudging",
        "calibration_verdictsighting",
        "calibration_golddoubt",
        "calibration_gatethresholds",
        "calibration_calibrationsplit",
        "calibration_driftfinding",
    )
