"""The card of a gold set: what data set hubs show of a folder, from its manifest alone."""

import html
import re
from typing import Any

import yaml

from calibration.measures import Figures

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MARKS = re.compile(r"([\\`*_\[\](){}#|~!>])")


def card_of(manifest: Figures) -> str:
    """README.md with the head that hubs read; the same for the same manifest."""
    head = yaml.safe_dump(_head(manifest), sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n" + "\n".join(_body(manifest)) + "\n"


def _head(manifest: Figures) -> dict[str, Any]:
    gold = sum(counts["gold"] for counts in manifest["counts"].values())
    size = next((name for limit, name in _SIZES if gold < limit), "1M<n<10M")
    head: dict[str, Any] = {
        "pretty_name": f"{manifest['evalset_name']} (gold, version {manifest['version']})"
    }
    if manifest.get("languages"):
        head["language"] = manifest["languages"]
    return head | {
        "task_categories": ["text-classification"],
        "annotations_creators": ["expert-generated"],
        "size_categories": [size],
        "tags": ["rag", "hallucination", "abstention", "llm-as-a-judge"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "gold.parquet"}]}],
    }


def _body(manifest: Figures) -> list[str]:
    round, rubric, choice = manifest["round"], manifest["rubric"], manifest["choice"]
    return [
        f"# {_plain(manifest['evalset_name'])}",
        "",
        "Gold labels: what graders who were blind to each other agreed on, or what was adjudicated. Each "
        "record has all its labels, the decision and its reason, the texts and the passages as served.",
        "",
        f"- eval set `{manifest['evalset']}`, version {manifest['version']}, content hash "
        f"`{manifest['content_hash']}`",
        f"- round {round['number']} ({round['kind']}, {round['state']}), rubric {_plain(rubric['version'])}, "
        f"sha256 `{rubric['sha256']}`",
        f"- headline unit: {manifest['primary_unit']}",
        f"- written by {manifest['app']['name']} {manifest['app']['version']}",
        *_choice(choice),
        "",
        "| dimension | targets | gold | without gold | labels given |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {_plain(name)} | {counts['targets']} | {counts['gold']} | {counts['unresolved']} "
            f"| {counts['labels']} |"
            for name, counts in manifest["counts"].items()
        ),
        "",
        "## Labels",
        "",
        *(
            f"- {_plain(name)}: "
            + ", ".join(f"{_plain(label)} {n}" for label, n in counts["by_label"].items())
            for name, counts in manifest["counts"].items()
        ),
        "",
        "## Systems",
        "",
        *(
            f"- run {system['system_run']}: {_plain(system['name'])} ({system['state']}, "
            f"`{system['content_hash'] or 'no hash yet'}`)"
            for system in manifest["systems"]
        ),
        "",
        "## How to use it",
        "",
        "`gold.jsonl`, `gold.csv` and `gold.parquet` hold the same records; in CSV and Parquet nested values "
        "are JSON, and in CSV cells that a spreadsheet would run are made inert by an apostrophe. Records "
        "whose `calibration_split` is `tuning` or `few_shot` were open to those who wrote a judge's prompt: "
        "they count for no figure of a judge. `unresolved.jsonl` has what is without gold, or was not asked "
        "for, without its texts. `recompute DIR` computes every figure of `manifest.json` again from these "
        "files alone.",
        "",
        "No licence is stated here: say one before you publish the folder. Graders appear by number only; "
        "texts are as they were imported.",
    ]


def _choice(choice: Figures) -> list[str]:
    told = {
        "dimensions": choice["dimensions"],
        "sources": choice["sources"],
        "strata": [f"{name} = {value}" for name, value in choice["strata"]],
        "parts": choice["parts"],
    }
    only = [
        f"- only {name}: " + ", ".join(_plain(part) for part in parts)
        for name, parts in told.items()
        if parts
    ]
    return [*only, f"- notes of graders: {'included' if choice['grader_notes'] else 'left out'}"]


def _plain(text: str) -> str:
    """Other people's words as words: no markup, on one line."""
    return _MARKS.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
