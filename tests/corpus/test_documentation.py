import sys
from inspect import cleandoc
from itertools import islice

import pyarrow
import pyarrow.parquet
import pytest

from symbert.corpus import documentation
from symbert.corpus.documentation import (
    PACKAGES,
    Package,
    is_prose,
    paragraphs,
    passages,
    read_documentation,
    source_url,
    write_documentation,
)
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


NUMPYDOC = cleandoc(
    """
    Return the sum of the given values, computed
    over one axis.

    Parameters
    ----------
    a : array_like
        Elements that are to be summed; anything that
        can be made an array.

        It has a second paragraph that is longer, see :func:`~numpy.sum` and ``np.prod`` [1]_.
    axis : int

    .. versionadded:: 1.7
        This sentence belongs to the directive and is left out.

    .. note::
        The note is kept because it is running text,
        and it goes on here.

    Notes
    -----
    An example of this follows here::

        This looks like a sentence but it is code.

    * The first item is long enough to be
      a sentence of its own.
    * The second item is also *quite* long enough for that.

    ======  =======
    First   Second.
    ======  =======

    Examples
    --------
    >>> print("This is code and no sentence at all.")
    This is the output and no sentence at all.

    The last paragraph comes after the code.

    References
    ----------
    .. [1] A. Author, "The Title Of Some Book", 1990.
    """
)


def test_the_sentences_of_a_docstring_come_one_paragraph_a_line():
    assert list(paragraphs(NUMPYDOC)) == [
        "Return the sum of the given values, computed over one axis.",
        "Elements that are to be summed; anything that can be made an array.",
        "It has a second paragraph that is longer, see numpy.sum and np.prod.",
        "The note is kept because it is running text, and it goes on here.",
        "The first item is long enough to be a sentence of its own.",
        "The second item is also quite long enough for that.",
        "The last paragraph comes after the code.",
    ]


def test_markdown_links_and_code_fences_are_taken_out():
    text = cleandoc(
        """
        See the [documentation](https://x.example/a) of [`Trainer`] for more of this.

        ```python
        This would be a sentence if it were not code.
        ```

        After the fence there is more text to read.
        """
    )
    assert list(paragraphs(text)) == [
        "See the documentation of Trainer for more of this.",
        "After the fence there is more text to read.",
    ]


def test_fragments_formulas_and_code_are_no_prose():
    assert is_prose("This is a plain sentence with seven words.")
    for text in (
        "Too few words here.",
        "lower case begins this line of several words.",
        "This line of several words has no end",
        "Computes \\alpha of the given matrix and vector.",
        "Calls f(x, y) + g(z) * h[0] with a_b, c_d e_f g_h.",
        "Returns x when a == b and nothing else otherwise.",
    ):
        assert not is_prose(text), text
