import re

import msgspec

from symbert.keys import Configuration
from symbert.settings import Settings


def keys_of(kind, above=""):
    """Every key that a class declares, and those of its sections."""
    for field in msgspec.structs.fields(kind):
        yield above + field.name
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from keys_of(field.type, f"{above}{field.name}.")


def test_every_declared_key_is_in_the_configuration_and_says_there_what_it_means(root):
    """A schema beside it said that fine-tuning decays all parameters, long after it did not."""
    text = (root / "config.yaml").read_text()
    written, above = {}, []
    for line in text.splitlines():
        if named := re.match(r"( *)(\w+):(.*)", line):
            above[len(named[1]) // 2 :] = [named[2]]
            written[".".join(above)] = named[3]
    del written["sweep.curve.steps.base"]
    values = [key for key in written if not key.startswith("suites.")]  # whose keys are those of `glue`
    assert set(keys_of(Configuration)) == set(values)
    assert [key for key, rest in written.items() if rest and " # " not in rest] == []
