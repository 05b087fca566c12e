import pytest

from workflow.checkout import check_out


@pytest.fixture(scope="session")
def checkout(root, tmp_path_factory):
    """A fresh copy of the project under a path with a space and a letter outside ASCII; nothing is run in it."""
    return check_out(root, tmp_path_factory.mktemp("fresh") / "a copy of symbért")
