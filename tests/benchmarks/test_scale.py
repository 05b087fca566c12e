import itertools
import json
import sys

from benchmarks import scale

BUSY = """
import time
held, file = bytearray(60_000_000), open(__file__)
held[::4096] = held[::4096].replace(b"\\0", b"1")
print("held")
time.sleep(1)
"""


def test_a_watched_command_has_its_memory_files_and_output(tmp_path):
    (tmp_path / "busy.py").write_text(BUSY)
    watched = scale.ran(scale.watch([sys.executable, "busy.py"], tmp_path))
    assert 60 < watched.own < 90 and watched.own <= watched.resident
    assert watched.files >= 4 and watched.output == "held\n" and watched.wall > 1 > watched.cpu


def test_made_up_documents_differ_in_id_and_text_however_often_the_block_is_repeated(monkeypatch):
    monkeypatch.setattr(scale, "BLOCK", 20)
    records = [json.loads(line) for line in itertools.islice(scale.documents(), 70)]
    assert len({record["warc_headers"]["warc-record-id"] for record in records}) == 70
    assert len({record["content"] for record in records}) == 70
    assert len({record["content"].partition(" ")[2] for record in records}) == 20
