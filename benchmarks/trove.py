"""The same filter in datatrove, which has an environment of its own: JSON lines in, parquet out."""

import sys

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import ParquetWriter
from datatrove.utils.logging import logger

from benchmarks.peers import is_kept


class PaperFilter(BaseFilter):
    """The paper's rules, on OSCAR's annotations."""

    name = "paper"

    def filter(self, doc: Document) -> bool:
        """Whether a document is kept."""
        return is_kept(doc.metadata)


def read(self, data: dict, path: str, line: int) -> dict:
    """What the filter and the output need of a line of OSCAR."""
    headers, annotations = data["warc_headers"], data["metadata"]
    names = ("categories", "harmful_pp", "quality_warnings")
    return {
        "text": data["content"],
        "id": headers["warc-record-id"],
        "metadata": {"url": headers["warc-target-uri"], **{name: annotations[name] for name in names}},
    }


def write(self, document: Document) -> dict:
    """The three columns that the corpus stage keeps, too."""
    return {"id": document.id, "url": document.metadata["url"], "text": document.text}


def main(folder: str, name: str, output: str) -> None:
    """Filter the part `name` in `folder` into the folder `output`."""
    logger.remove()
    pipeline = [
        JsonlReader(folder, glob_pattern=name, adapter=read, add_file_path=False),
        PaperFilter(),
        ParquetWriter(output, adapter=write),
    ]
    LocalPipelineExecutor(pipeline, tasks=1, workers=1, logging_dir=f"{output}/logs").run()


if __name__ == "__main__":
    main(*sys.argv[1:])
