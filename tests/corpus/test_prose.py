from inspect import cleandoc

from symbert.corpus.prose import is_prose, paragraphs

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
