"""URLs looked up in the blocklist, as a worker does it: microseconds each, and the memory that the worker holds."""

import json
import sys
import time
from pathlib import Path

from symbert.corpus.blocklist import Blocklist


def main(trie: str, urls: str) -> None:
    """Look up the URLs of a file, and print what it took; a line is a URL after + (listed) or - (not)."""
    lines = Path(urls).read_text().split("\n")
    addresses, expected = [line[1:] for line in lines], sum(line[0] == "+" for line in lines)
    before = held(trie)
    blocklist = Blocklist(Path(trie))
    begun = time.process_time()
    found = sum(1 for address in addresses if blocklist.look_up(address))
    seconds = time.process_time() - begun
    assert found == expected, f"{found:,} URLs found of {expected:,} that are listed"
    private, mapped = (after - earlier for after, earlier in zip(held(trie), before, strict=True))
    microseconds = seconds / len(addresses) * 1e6
    print(json.dumps({"microseconds": microseconds, "private_mb": private, "mapped_mb": mapped}))


def held(trie: str) -> tuple[float, float]:
    """MB of this process's own memory, and MB of the trie's pages that are resident in it (shared by all workers)."""
    private = mapped = 0
    of_trie = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:  # the header of a mapping
            of_trie = words[-1] == trie
        elif words[0] == "Anonymous:":
            private += int(words[1])
        elif words[0] == "Rss:" and of_trie:
            mapped += int(words[1])
    return private * 1024 / 1e6, mapped * 1024 / 1e6


if __name__ == "__main__":
    main(*sys.argv[1:])
