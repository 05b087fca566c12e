import pytest

from corpus.oscar import write_archive
from symbert.corpus.blocklist import Blocklist, build_blocklist
from symbert.corpus.wordpiece import write_vocabulary
from symbert.sources import BLOCKLIST, DEMO


@pytest.fixture
def make_blocklist(tmp_path):
    """Builds a blocklist from category → (domains, urls)."""

    def make(categories: dict[str, tuple[list[str], list[str]]]) -> Blocklist:
        members = {}
        for name, (domains, urls) in categories.items():
            members[f"blacklists/{name}/domains"] = "\n".join(domains)
            members[f"blacklists/{name}/urls"] = "\n".join(urls)
        archive = write_archive(tmp_path / "archive.tar.gz", members)
        build_blocklist(archive, tmp_path / "trie", tmp_path / "summary.json")
        return Blocklist(tmp_path / "trie")

    return make


@pytest.fixture(scope="session")
def mirror_blocklist(mirror, tmp_path_factory):
    """The trie of the mirror's UT1 archive; its summary lies beside it."""
    path = tmp_path_factory.mktemp("ut1") / "blocklist.marisa"
    build_blocklist(mirror / BLOCKLIST.location, path, path.with_suffix(".json"))
    return path


@pytest.fixture
def blocklist_file(tmp_path):
    """The demo's blocklist."""
    build_blocklist(DEMO / BLOCKLIST.location, tmp_path / "blocklist.marisa", tmp_path / "blocklist.json")
    return tmp_path / "blocklist.marisa"


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory):
    """A small vocabulary."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    write_vocabulary(["the function returns the value of the given function", "mixed blanks and tabs"] * 50, 120, path)
    return path
