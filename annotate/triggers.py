from evalsets.triggers import append_only


def history_rules():
    return append_only("annotate_annotationevent", "annotate_adjudication")
