"""A failure ends with one of four exit codes, and its message begins with the file or key."""

import errno
import os

import pytest

from symbert import cli, errors
from symbert.errors import MissingInputError, SymbertError, explain
from symbert.files import reading, writing

REFUSED = (
    errno.EACCES,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EIO,
    errno.ESTALE,
)


def test_an_exit_code_says_who_has_to_act():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SymbertError)}
    assert {kind.__name__ for kind in kinds if kind.exit_code != 65} == {
        *("SymbertError", "UsageError", "ConfigError", "PreemptedError", "TimeLimitError")
    }
    codes = {name: getattr(errors, name).exit_code for name in ("UsageError", "ConfigError", "PreemptedError")}
    assert codes == {"UsageError": 64, "ConfigError": 64, "PreemptedError": 75} and SymbertError.exit_code == 70


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["plan", "--config", "parts"], 64, "--config parts"),
        (["status", "none"], 65, "results/none/config.yaml"),
        (["plan", "--config", "sorce=hub"], 64, "'sorce'"),
        (["status", "--config", "glue.epochs=3"], 64, "glue='{epochs: 3}'"),
        (["status", "--config", "glue.robustness.noise=[]"], 64, "glue='{robustness: {noise: []}}'"),
        (["status", "--config", "pretrain={steps: 0}"], 64, "'pretrain.steps'"),
        (["status", "--config", "scale=demoo"], 64, "did you mean 'demo'"),
        (["status", "--config", "source=mirror", "mirror=/no/such/place"], 65, "/no/such/place"),
        (["plan", "--config", "scale=paper", "corpus={source: hub}"], 64, "'source' is embedded"),
        (["status", "--configfile", "tiny.yaml"], 65, "tiny.yaml"),
        (["plan", "--configfile", "mine.yaml"], 65, "mine.yaml"),
        (["pack", "none/manifest.json"], 65, "none/settings.json"),
        (["locate-sample", "cut.json", "train", "0"], 65, "cut.json"),
        (["download", "results/published/file"], 65, "results/published: no settings.json"),
        (["pack", "cut.json/manifest.json"], 65, "cut.json"),
    ],
)
def test_a_failure_of_a_command_is_one_line_that_names_the_key_or_file(words, code, told, project, capsys):
    project.joinpath("cut.json").write_text('{"documents": ')
    project.joinpath("mine.yaml").write_text("pretrain: {steps: [")
    assert cli.main(words) == code
    said = capsys.readouterr().err
    assert said.startswith(f"symbert {words[0]}: ") and told in said and said.count("\n") == 1


def broken() -> None:
    """Divide by zero."""
    raise ZeroDivisionError


def test_a_bug_ends_with_70_and_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(cli, "load", lambda command: broken)
    assert cli.main(["plan"]) == 70
    said = capsys.readouterr().err
    assert "in broken" in said and said.splitlines()[-1].startswith("symbert plan: internal error: ZeroDivisionError")


@pytest.mark.parametrize("number", REFUSED)
def test_an_error_of_the_system_is_data_and_names_its_file(number, tmp_path):
    file, reason = tmp_path / "part.jsonl", os.strerror(number)
    for context in (reading, writing):
        with pytest.raises(OSError) as failure, context(file):
            raise OSError(number, "words of a library")  # which names no file
        assert explain(failure.value) == (65, f"{file}: {reason}")
        with pytest.raises(OSError) as failure, context(file):
            raise RuntimeError(f"Rust says so (os error {number})")
        assert explain(failure.value) == (65, f"{file}: {reason}")


def test_a_missing_file_is_named_with_the_remedy(tmp_path):
    with (
        pytest.raises(MissingInputError, match=r"a\.json: file not found; run it$"),
        reading(tmp_path / "a.json", "run it"),
    ):
        (tmp_path / "a.json").read_text()


@pytest.mark.parametrize("number", [errno.ECONNRESET, errno.EAGAIN])
def test_a_lost_connection_is_no_error_of_the_file_that_it_was_for(number, tmp_path):
    refused = OSError(number, os.strerror(number))
    for context in (reading, writing):
        with pytest.raises(OSError, match=os.strerror(number)) as raised, context(tmp_path / "part.jsonl"):
            raise refused
        assert raised.value is refused


def test_an_error_that_is_none_of_the_system_is_a_bug():
    assert explain(OSError("cannot load the config"))[0] == explain(KeyError("x"))[0] == 70
