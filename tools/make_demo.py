"""Write the demo, which src/symbert/demo holds: python tools/make_demo.py FOLDER [--packages DIR]

DIR is where the packages whose documentation is the text are installed, at the versions of demo_documentation.py; by
default those of this environment. The same versions of them and of our dependencies (envs/constraints.txt) give the
same bytes. LICENSES.txt, beside them, has the licences of those packages; it is no output.
"""

import argparse
import sysconfig
from pathlib import Path

from demo_corpus import documentation_pages, frequent_words, write_corpus
from demo_documentation import passages
from demo_suites import sentences_in, write_blimp, write_squad2, write_superglue
from demo_tasks import write_glue

from symbert.files import sha256_of, write_text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the demo is written")
    parser.add_argument("--packages", type=Path, default=Path(sysconfig.get_path("purelib")), metavar="DIR")
    arguments = parser.parse_args()
    root, documentation = arguments.folder, passages(arguments.packages)
    write_corpus(documentation, root)
    write_glue(frequent_words((page.text for page in documentation_pages(documentation)), root), root)
    sentences = sentences_in(documentation)
    for write in (write_superglue, write_squad2, write_blimp):
        write(sentences, root)
    files = sorted(path for path in root.glob("*/**/*") if path.is_file())
    write_text(root / "SHA256SUMS", "".join(f"{sha256_of(path)}  {path.relative_to(root)}\n" for path in files))


if __name__ == "__main__":
    main()
