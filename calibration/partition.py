"""Which items may tune a prompt: the split follows from the seed and the item's id alone."""

import hashlib
from collections.abc import Container

TUNING, CALIBRATION, FEW_SHOT = "tuning", "calibration", "few_shot"
PARTS = (CALIBRATION, TUNING, FEW_SHOT)


def part_of(item_id: str, *, seed: int, tuning_share: float, few_shot: Container[str]) -> str:
    """Which part an item belongs to: the examples of a prompt first, then by the seed."""
    if item_id in few_shot:
        return FEW_SHOT
    digest = hashlib.sha256(f"{seed}:{item_id}".encode()).digest()
    return TUNING if int.from_bytes(digest[:8]) / 2**64 < tuning_share else CALIBRATION
