"""Sweeps of a setting: systems that differ in one setting and in nothing else, in the order of its values.

Pure: what a system is arrives as its model, provider and settings.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Setting:
    """What a system run was made with."""

    model: str
    provider: str
    settings: Mapping[str, Any]

    def without(self, lever: str) -> tuple[str, str, str]:
        rest = {name: value for name, value in self.settings.items() if name != lever}
        return self.model, self.provider, json.dumps(rest, sort_keys=True, default=str)


@dataclass(frozen=True)
class Sweep:
    """One lever and what it was set to, the systems in that order."""

    lever: str
    steps: tuple[tuple[Hashable, str], ...]  # system, value in words


def sweeps_of(systems: Mapping[Any, Setting]) -> list[Sweep]:
    """Every lever that some systems differ in alone; a value that two of them share makes no step."""
    found = []
    for lever in sorted({name for setting in systems.values() for name in setting.settings}):
        alike: dict[tuple[str, str, str], list[Hashable]] = {}
        for system, setting in systems.items():
            if lever in setting.settings and not isinstance(setting.settings[lever], dict | list):
                alike.setdefault(setting.without(lever), []).append(system)
        for members in alike.values():
            values = {system: systems[system].settings[lever] for system in members}
            if len(set(map(str, values.values()))) < 2:
                continue
            ordered = sorted(members, key=lambda system: _in_order(values[system]))
            found.append(Sweep(lever, tuple((system, _written(values[system])) for system in ordered)))
    return found


def _in_order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, float(value), ""
    try:
        return 0, float(str(value)), ""
    except ValueError:
        return 1, 0.0, str(value)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
