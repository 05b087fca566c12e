"""The texts of the studies `direction` and `redrawn`: functions that `texts` of a configuration name, as
studies.texts:directed.

All have SYMBOLS or fewer kinds of symbols, drawn by Zipf's law where nothing else says what they are.
"""

import numpy as np

from symbert.corpus.texts import CHARACTERS, COPIED, DISTANCE, SPAN, SYMBOLS, written, zipf
from symbert.draws import uniform

CLASSES = 16  # images of the symbols of `directed`
PAIRS, KINDS = 12, 32  # of a row of `addressed`; of keys, and of values
ROW = 4 * PAIRS  # symbols


def directed() -> str:
    """Images of a map that sends four symbols to one, so that an image says at most the class of its source."""
    images = np.argsort(uniform(4, np.arange(SYMBOLS)))[:CLASSES]
    return _with_images(np.repeat(images, SYMBOLS // CLASSES))


def repeated() -> str:
    """Copies under the rule of the other texts: a copy is no source."""
    return _with_images(_order())


def swapped() -> str:
    """Images of a map that exchanges the symbols of 32 pairs: the image of an image is its source, either way."""
    return _with_images(_order().reshape(-1, 2)[:, ::-1].ravel())


def cycled() -> str:
    """Images of a map that goes round all symbols: as `swapped`, but the way back is another than the way there."""
    return _with_images(np.roll(_order(), -1))


def neighbours() -> str:
    """As `swapped`, but symbols of neighbouring frequency are exchanged, which hardly tell images from sources."""
    return _with_images(_order() ^ 1)


def chained() -> str:
    """Images of the map of `swapped` where copies of `copying` are: an image is a source, too, so it may have one."""
    return _with_images(_order().reshape(-1, 2)[:, ::-1].ravel(), are_sources=True)


def _order() -> np.ndarray:
    """The symbols in the order in which maps are written."""
    return np.argsort(uniform(3, np.arange(SYMBOLS)))


def _with_images(images: np.ndarray, are_sources: bool = False) -> str:
    """Spans of SPAN symbols; a share COPIED of those whose source is drawn are its images, x(i) = f(x(i − DISTANCE)).

    `images` are those of the symbols in their order. They are no sources unless it is said: of `directed` their few
    kinds could be told apart by their own images.
    """
    symbols, back = zipf(SYMBOLS, CHARACTERS, 1).reshape(-1, SPAN), DISTANCE // SPAN
    image = np.empty(SYMBOLS, int)
    image[_order()] = images
    is_image = np.zeros(len(symbols), bool)
    for number in np.flatnonzero(uniform(2, np.arange(len(symbols))) < COPIED):
        if number >= back and (are_sources or not is_image[number - back]):
            symbols[number], is_image[number] = image[symbols[number - back]], True
    return written(symbols)


def redrawn(number: int) -> str:
    """The language of `copying` with other random numbers: a language for each `number` from 1."""
    symbols = zipf(SYMBOLS, CHARACTERS, 100, number).reshape(-1, SPAN)
    for span in np.flatnonzero(uniform(101, number, np.arange(len(symbols))) < COPIED):
        if span >= DISTANCE // SPAN:
            symbols[span] = symbols[span - DISTANCE // SPAN]
    return written(symbols)


def redrawn_1() -> str:
    """The first redrawn language of `redrawn`."""
    return redrawn(1)


def redrawn_2() -> str:
    """The second."""
    return redrawn(2)


def redrawn_3() -> str:
    """The third."""
    return redrawn(3)


def redrawn_4() -> str:
    """The fourth."""
    return redrawn(4)


def redrawn_5() -> str:
    """The fifth."""
    return redrawn(5)


def addressed() -> str:
    """Rows of ROW symbols: PAIRS of a key and a value, then the same keys in another order, each before a value.

    A share COPIED of the later values are those of their keys. The keys of a row are distinct; keys and values are of
    different kinds.
    """
    rows = CHARACTERS // ROW
    row = np.arange(rows)[:, None]
    keys = np.argsort(uniform(1, row, np.arange(KINDS)))[:, :PAIRS]
    order = np.argsort(uniform(2, row, np.arange(PAIRS)))
    values, later = (zipf(KINDS, rows * PAIRS, key).reshape(rows, PAIRS) + KINDS for key in (3, 4))
    follows = uniform(5, row, np.arange(PAIRS)) < COPIED
    later = np.where(follows, np.take_along_axis(values, order, 1), later)
    halves = (keys, values), (np.take_along_axis(keys, order, 1), later)
    return written(np.concatenate([np.stack(half, 2).reshape(rows, -1) for half in halves], 1))
