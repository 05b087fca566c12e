import pytest

from corpus.oscar import write_archive
from symbert.corpus.blocklist import Blocklist, BuildBlocklist, write_blocklist
from symbert.corpus.wordpiece import write_vocabulary
from symbert.sources import BLOCKLIST, BLOCKLIST_CHECKSUMS, DEMO, EMBEDDED, file_of


@pytest.fixture(scope="session")
def make_blocklist(tmp_path_factory):
    """Builds a blocklist from category → (domains, urls)."""

    def make(categories: dict[str, tuple[list[str], list[str]]]) -> Blocklist:
        members, folder = {}, tmp_path_factory.mktemp("blocklist")
        for name, (domains, urls) in categories.items():
            members[f"blacklists/{name}/domains"] = "\n".join(domains)
            members[f"blacklists/{name}/urls"] = "\n".join(urls)
        archive = write_archive(folder / "archive.tar.gz", members)
        write_blocklist(archive, folder / "trie", folder / "summary.json")
        return Blocklist(folder / "trie")

    return make


@pytest.fixture(scope="session")
def blocklist_file(tmp_path_factory):
    """The demo's blocklist."""
    path = tmp_path_factory.mktemp("blocklist") / "blocklist.marisa"
    write_blocklist(DEMO / BLOCKLIST.location, path, path.with_suffix(".json"))
    return path


@pytest.fixture
def blocklist(blocklist_file, folder):
    """The step of the demo's blocklist, which lies in its folder below the one in which the test runs."""
    archive, checksums = (file_of(f"{EMBEDDED}/{file.location}") for file in (BLOCKLIST, BLOCKLIST_CHECKSUMS))
    step = BuildBlocklist(archive=archive, checksums=checksums)
    path = folder / step.paths()[0]
    path.parent.mkdir(parents=True)
    path.symlink_to(blocklist_file)
    return step


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory):
    """A small vocabulary."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    write_vocabulary(["the function returns the value of the given function", "mixed blanks and tabs"] * 50, 120, path)
    return path
