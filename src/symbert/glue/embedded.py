"""Stand-ins for the GLUE tasks, made from the documentation of installed packages: no network, same shape.

They have the hub's columns, label types, class names and file layout, and nothing of GLUE's content: each row
is a sentence of documentation, or a pair that a rule below makes from one or two of them. Each rule leaves
something that a small encoder can learn: word order, topic, words in common, and, as in the real tasks, words
that give a class away. Scores on them say that the chain works, not how good a model is at GLUE.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.corpus.documentation import Passage, passages
from symbert.files import publish
from symbert.glue.prepare import STAND_IN
from symbert.glue.tasks import GLUE, Task

ROWS = {"train": 2_000}
EVALUATION_ROWS = 500
FEWEST_WORDS, MOST_WORDS = 6, 14  # so that a pair fits 64 word pieces
FOREIGN = ("sympy", "networkx")  # their sentences are the mismatched genre of MNLI, and appear nowhere else in it
