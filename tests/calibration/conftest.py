import shutil

import pytest

from tests.calibration.gold_set import files_of_a_set


@pytest.fixture(scope="module")
def kept_files(kept, tmp_path_factory):
    return kept(files_of_a_set, tmp_path_factory.mktemp("gold"))


@pytest.fixture
def exported(kept_files, tmp_path):
    """The files of a gold export with their manifest: a copy, which a test may edit."""
    folder, manifest = kept_files
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, manifest
