"""README and operations page say what is there."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

ROOT = Path(settings.BASE_DIR)
README, OPERATIONS = ROOT / "README.md", ROOT / "docs" / "operations.md"
APPS = ("annotate", "calibration", "config", "evalsets")


def fenced_lines(document: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def run_commands(document: Path) -> list[list[str]]:
    """Every `./run ...` of a document, fenced or in a sentence, as words."""
    lines = [line for line in fenced_lines(document) if line.startswith("./run")]
    lines += re.findall(r"`(\./run[^`]*)`", document.read_text().replace("\n", " "))
    return [shlex.split(line, comments=True) for line in lines]


def words_of_script() -> set[str]:
    script = (ROOT / "run").read_text()
    cases = script[script.index('case "${1:-start}" in') :]
    return set(re.findall(r"^  (\w+)(?: [^)]*)?\) ", cases, flags=re.MULTILINE))


@pytest.mark.parametrize("document", [README, OPERATIONS], ids=lambda document: document.name)
def test_commands_of_the_page_exist(document):
    commands = run_commands(document)
    assert len(commands) >= 2
    assert {words[1] for words in commands if len(words) > 1} <= words_of_script()
    managed = {words[2] for words in commands if words[1:2] == ["manage"] and len(words) > 2}
    assert managed <= set(get_commands())


def test_readme_names_every_word_of_the_script():
    named = {words[1] for words in run_commands(README) if len(words) > 1}
    assert words_of_script() - named == {"start", "help"}


def test_usage_names_every_word_of_the_script():
    script = (ROOT / "run").read_text()
    usage = script[script.index("usage() {") : script.index("\nTEXT\n")]
    assert words_of_script() - set(re.findall(r"^\./run (\w+)", usage, flags=re.MULTILINE)) == {
        "start",
        "help",
    }


def test_continuous_integration_runs_the_test_command_of_the_readme():
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if line] == ['exec "$(dirname -- "$0")/../run" test']
    assert ["./run", "test"] in run_commands(README)


@pytest.mark.parametrize(
    "document", [README, OPERATIONS, ROOT / "CHANGELOG.md"], ids=lambda document: document.name
)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_rooms_named_in_the_readme_exist():
    text = README.read_text()
    rooms = text[text.index("## Where does X happen?") : text.index("## Working on it")]
    names = [name for name in re.findall(r"`([\w./]+)`", rooms) if "/" in name]
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


# Settings


def variables_read() -> set[str]:
    """Every environment variable that the application's code names."""
    readers = {"flag", "whole_number", "trust_gate", "web_address", "webhook_secret", "get"}
    found = set()
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                    continue
                reads = node.func.attr in readers and ast.unparse(node.func.value) in ("env", "os.environ")
                if reads and isinstance(node.args[0], ast.Constant):
                    found.add(node.args[0].value)
    return found


def documented(heading: str) -> set[str]:
    text = OPERATIONS.read_text()
    part = text[text.index(heading) :]
    part = part[: part.index("\n\n", part.index("| --- |"))]
    return set(re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE))


def test_settings_that_are_read_are_the_settings_that_are_documented():
    found = variables_read()
    assert {"DATABASE_URL", "SECRET_KEY", "JUDGE_TIMEOUT_SECONDS"} <= found
    assert found == documented("## Settings")


def test_variables_of_the_script_are_documented():
    script = (ROOT / "run").read_text()
    given = set(re.findall(r"\$\{([A-Z_]+):-", script)) - documented("## Settings") - {"PYTHONWARNINGS"}
    assert given == documented("Only `./run` reads these")


def test_defaults_in_the_settings_table_are_those_of_the_code():
    source = (ROOT / "config" / "settings.py").read_text()
    defaults = dict(re.findall(r'whole_number\("(\w+)", default=(\d+)\)', source))
    assert defaults
    for name, value in defaults.items():
        assert f"| `{name}` | `{value}` |" in OPERATIONS.read_text()
