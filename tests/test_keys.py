import re

import msgspec

from symbert.keys import Configuration
from symbert.project import describe_keys
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
    assert set(keys_of(Configuration)) == set(written)
    assert [key for key, rest in written.items() if rest and " # " not in rest] == []


def test_a_key_is_described_by_its_comment_its_type_and_the_papers_value(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    describe_keys("dropout")
    assert capsys.readouterr().out.splitlines() == [
        "pretrain.dropout: 0.1",
        "    everywhere, attention included (authors)",
        "    allowed: a number ≥ 0 and < 1",
        "glue.dropout: 0.1",
        "    everywhere, attention and classifier included",
        "    allowed: a number ≥ 0 and < 1",
    ]
    describe_keys()
    described = capsys.readouterr().out.splitlines()
    assert "    allowed: embedded | mirror | hub | files | null" in described
    names = [line.partition(":")[0] for line in described if line[0] != " "]
    assert len(described) == 3 * len(names) and set(names) < set(keys_of(Configuration))
