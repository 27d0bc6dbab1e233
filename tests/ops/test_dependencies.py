"""What is imported is declared, what is declared is locked, and a lock names neither place nor host."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from django.conf import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(settings.BASE_DIR)
APPS = ("annotate", "calibration", "config", "evalsets")
LOCKS = ("requirements.lock", "tests/requirements.lock", "tests/servers.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def names(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def locked(lock: str) -> list[Requirement]:
    lines = (ROOT / lock).read_text().splitlines()
    return [Requirement(line.removesuffix("\\").strip()) for line in lines if re.match(r"[a-z0-9]", line)]


def imported_packages(folders: tuple[str, ...]) -> dict[str, str]:
    """Top-level module of every import in the folders, with a file that has it."""
    found = {}
    for app in folders:
        for path in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    modules = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    modules = [node.module]
                else:
                    continue
                found.update({module.split(".")[0]: str(path.relative_to(ROOT)) for module in modules})
    own = {*sys.stdlib_module_names, *APPS, "tests"}
    return {name: at for name, at in found.items() if name not in own}


@pytest.mark.parametrize("folders", [APPS, ("tests",)], ids=["applications", "tests"])
def test_every_import_is_declared(folders):
    declared = names(PROJECT["project"]["dependencies"])
    for extra in PROJECT["project"]["optional-dependencies"].values():
        declared |= names(extra)
    if folders == ("tests",):
        declared |= {name for group in PROJECT["dependency-groups"].values() for name in names(group)}
    distributions = packages_distributions()
    undeclared = {
        module: at
        for module, at in imported_packages(folders).items()
        if not {canonicalize_name(name) for name in distributions.get(module, [module])} & declared
    }
    assert undeclared == {}


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_has_hashes_and_no_address(lock):
    text = (ROOT / lock).read_text()
    assert not re.search(r"://|^-|file:|(?<![\w.])/(?!usr)", text, flags=re.MULTILINE)
    entries = re.split(r"\n(?=[a-z0-9])", text)
    assert len(entries) > 3
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_everything_declared_is_locked():
    dependencies = names(PROJECT["project"]["dependencies"])
    of_tests = names(PROJECT["dependency-groups"]["test"])
    of_servers = names(PROJECT["dependency-groups"]["servers"])
    assert dependencies <= {canonicalize_name(entry.name) for entry in locked("requirements.lock")}
    assert dependencies | of_tests <= {
        canonicalize_name(entry.name) for entry in locked("tests/requirements.lock")
    }
    assert of_servers <= {canonicalize_name(entry.name) for entry in locked("tests/servers.lock")}


def test_tests_run_on_the_versions_that_are_installed_for_running():
    running, tests = (
        {f"{entry.name}{entry.specifier}" for entry in locked(lock)}
        for lock in ("requirements.lock", "tests/requirements.lock")
    )
    assert running <= tests
