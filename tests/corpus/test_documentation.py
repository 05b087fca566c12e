import sys
from itertools import islice

import pyarrow
import pyarrow.parquet
import pytest

from symbert.corpus import documentation
from symbert.corpus.documentation import (
    PACKAGES,
    Package,
    passages,
    read_documentation,
    source_url,
    write_documentation,
)
from symbert.corpus.prose import is_prose
from symbert.errors import DataError, MissingInputError

SMALL = tuple(package for package in PACKAGES if package.distribution in ("networkx", "snakemake"))


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documentation, "PACKAGES", SMALL)
        return list(passages())


def test_passages_are_english_paragraphs_and_occur_once(found):
    assert len(found) > 5000
    assert len({passage.text for passage in found}) == len(found)
    assert all(is_prose(passage.text) and "\n" not in passage.text for passage in found)
    assert sum(passage.text.count(" the ") for passage in found) > 5000


def test_passages_come_in_the_order_of_packages_and_paths(found):
    places = [(passage.package, passage.path) for passage in found]
    assert places == sorted(places)
    assert {package for package, _ in places} == {"networkx", "snakemake"}
    assert not [path for _, path in places if "/tests/" in path]


def test_a_passage_names_its_object_and_its_page(found):
    passage = next(passage for passage in found if passage.name.endswith(".pagerank"))
    assert passage.path == "networkx/algorithms/link_analysis/pagerank_alg.py"
    assert passage.name == "networkx.algorithms.link_analysis.pagerank_alg.pagerank"
    assert source_url(passage) == (
        f"https://github.com/networkx/networkx/blob/networkx-{passage.version}/{passage.path}"
    )


def write_another_table(path):
    pyarrow.parquet.write_table(pyarrow.table({"text": ["A line."]}), path)


def test_what_is_written_is_read_again(found, tmp_path, monkeypatch):
    monkeypatch.setattr(documentation, "passages", lambda: iter(found[:500]))
    write_documentation(tmp_path / "documentation.parquet")
    assert read_documentation(tmp_path / "documentation.parquet") == found[:500]


@pytest.mark.parametrize("damaged", [lambda path: path.write_bytes(b"PAR1"), write_another_table])
def test_a_file_that_holds_no_documentation_is_named_with_the_remedy(tmp_path, damaged):
    damaged(tmp_path / "documentation.parquet")
    with pytest.raises(DataError, match=r"documentation\.parquet: no documentation .*; delete it and run"):
        read_documentation(tmp_path / "documentation.parquet")


def test_the_packages_are_not_imported():
    before = set(sys.modules)
    list(islice(passages(), 100))
    assert "matplotlib" not in set(sys.modules) - before


def test_a_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(documentation, "PACKAGES", (Package("no-such-package", "none", "", ""),))
    with pytest.raises(MissingInputError, match="no-such-package: not installed"):
        list(passages())
