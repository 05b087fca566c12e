import re
from collections import Counter
from importlib import metadata

import pytest

from symbert.corpus.documentation import DOCUMENTATION, FILES_AT, read_documentation, source_url

WORD = re.compile(r"[(\"'“‘]*[A-Za-z]+(?:[-'’/][A-Za-z]+)*[)\"'”’]*[,.;:!?]*[)\"']*")


@pytest.fixture(scope="module")
def passages():
    return read_documentation()


def test_passages_are_english_sentences_and_occur_once(passages):
    texts = [passage.text for passage in passages]
    assert len(texts) == len(set(texts)) == 60_272
    assert all(re.fullmatch(r"[\"'(]?[A-Z].*[.!?][\"')]?", text) for text in texts)
    assert all(sum(map(bool, map(WORD.fullmatch, text.split()))) >= 0.8 * len(text.split()) for text in texts)
    assert sum(text.count(" the ") for text in texts) > 50_000


def test_passages_come_in_the_order_of_packages_and_files(passages):
    places = [(passage.package, passage.path) for passage in passages]
    assert places == sorted(places)
    assert {package for package, _ in places} == set(FILES_AT)
    assert not [path for _, path in places if "/tests/" in path]


def test_a_passage_names_its_object_and_its_page(passages):
    passage = next(passage for passage in passages if passage.name.endswith(".pagerank"))
    assert passage.path == "networkx/algorithms/link_analysis/pagerank_alg.py"
    assert passage.name == "networkx.algorithms.link_analysis.pagerank_alg.pagerank"
    assert source_url(passage) == f"https://github.com/networkx/networkx/blob/networkx-3.6.1/{passage.path}"


def test_each_package_comes_with_its_licence(passages):
    licences = DOCUMENTATION.with_name("documentation-licenses.txt").read_text(encoding="utf-8")
    for package, version in {(passage.package, passage.version) for passage in passages}:
        assert f"{package} {version}" in licences


def test_the_text_is_that_of_the_installed_packages(passages):
    """Of those whose version is installed: what stands in our file stands in theirs, but for blanks and markup."""
    texts = {}
    for passage in passages[::500]:
        if metadata.version(passage.package) == passage.version:
            file = metadata.distribution(passage.package).locate_file(passage.path)
            texts.setdefault(file, Counter()).update(re.findall(r"[A-Za-z]{4,}", passage.text))
    for file, words in texts.items():
        assert not words.keys() - set(re.findall(r"[A-Za-z]{4,}", file.read_text(encoding="utf-8"))), file
    if not texts:
        pytest.skip("no package is installed in the version that the passages are from")
