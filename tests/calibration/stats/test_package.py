"""The package stands alone: no framework, nothing heavy before it is used, and examples that run."""

import doctest
import pkgutil
import re
import subprocess
import sys
from importlib import import_module

import pytest

from calibration import stats

LIMIT_MICROSECONDS = 150_000
MODULES = [module.name for module in pkgutil.iter_modules(stats.__path__)]
ROOT = stats.__path__[0].rsplit("/", 2)[0]


def run(code, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )


def test_import_is_quick():
    timings = []
    for _ in range(3):
        lines = run("import calibration.stats", "-X", "importtime").stderr.splitlines()
        line = next(line for line in lines if line.endswith("calibration.stats"))
        timings.append(int(re.split(r"[|:]", line)[2]))
    assert min(timings) < LIMIT_MICROSECONDS


def test_scipy_and_scikit_learn_are_loaded_where_used():
    code = (
        "import sys\n"
        "from calibration import stats\n"
        "for name in stats.__all__: getattr(stats, name)\n"
        "import calibration.gate\n"
        "heavy = ('scipy', 'sklearn', 'pandas', 'django', 'statsmodels')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert run(code).stdout.strip() == "[]"


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(import_module(f"calibration.stats.{name}")).failed == 0


def test_every_public_name_can_be_imported():
    for name in stats.__all__:
        assert getattr(stats, name) is not None
    assert dir(stats) == stats.__all__
