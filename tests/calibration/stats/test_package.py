"""The package stands alone: no framework, nothing heavy before it is used, and examples that run."""

import doctest
import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from calibration import stats

LIMIT_SECONDS = 0.15
MODULES = [module.name for module in pkgutil.iter_modules(stats.__path__)]
ROOT = stats.__path__[0].rsplit("/", 2)[0]


def run(code):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)


def test_import_is_quick():
    # Processor time, so that a busy machine does not count against the package.
    code = (
        "import time\n"
        "start = time.process_time()\n"
        "import calibration.stats\n"
        "print(time.process_time() - start)"
    )
    assert min(float(run(code).stdout) for _ in range(3)) < LIMIT_SECONDS


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


def test_no_module_takes_the_name_of_what_is_in_one():
    """Once it is loaded, Python puts the module in the place of the function."""
    assert not set(MODULES) & set(stats.__all__)
