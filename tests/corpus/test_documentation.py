import pytest

from symbert.corpus.documentation import DOCUMENTATION, read_documentation


@pytest.fixture(scope="module")
def passages():
    return read_documentation()


def test_each_package_comes_with_its_licence(passages):
    licences = DOCUMENTATION.with_name("documentation-licenses.txt").read_text(encoding="utf-8")
    for package, version in {(passage.package, passage.version) for passage in passages}:
        assert f"{package} {version}" in licences
