import multiprocessing
import os

import pytest

from symbert.errors import DataError, InputOutputError, MissingInputError
from symbert.files import copy_file, publish, read_json, sha256_of, single_writer, write_json


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError), publish(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_successful_write_replaces_the_file_at_once(tmp_path):
    target = tmp_path / "deep" / "table.csv"
    with publish(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert os.listdir(target.parent) == ["table.csv"]


def test_a_number_that_is_not_finite_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "score.json", {"mrpc": float("nan")})
    assert not (tmp_path / "score.json").exists()


def test_a_missing_and_a_broken_json_file_are_named(tmp_path):
    with pytest.raises(MissingInputError, match="absent.json"):
        read_json(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(DataError, match="broken.json"):
        read_json(tmp_path / "broken.json")


def test_copying_a_missing_file_names_it(tmp_path):
    with pytest.raises(MissingInputError, match="nothing"):
        copy_file(tmp_path / "nothing", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_sha256_is_the_standard_one(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")  # FIPS 180-2, appendix B.1
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def _try_to_enter(directory, answer):
    try:
        with single_writer(directory):
            answer.put("entered")
    except InputOutputError as error:
        answer.put(str(error))


def test_a_second_process_is_refused_while_the_first_writes(tmp_path):
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    with single_writer(tmp_path):
        other = context.Process(target=_try_to_enter, args=(tmp_path, answer))
        other.start()
        said = answer.get(timeout=20)
        other.join()
    assert str(tmp_path) in said and str(os.getpid()) in said
    _try_to_enter(tmp_path, answer)
    assert answer.get(timeout=20) == "entered"
