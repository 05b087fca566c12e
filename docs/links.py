"""For the site: README is its page of the first hour, other files outside docs/ are linked in the repository, and pages have
its address where they say REPOSITORY."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
README = "first-hour.md"


def on_files(files: Any, config: Any) -> None:
    """Add README to the pages, with links as they are from docs/."""
    text = (Path(config.docs_dir).parent / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\((?!docs/|https?:|#)", "](../", text)  # files beside docs/
    files.append(File.generated(config, README, content=re.sub(r'(\]\(|src=")docs/', r"\1", text)))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The text of a page, where links that leave docs/ lead to the repository, or are plain text without one."""
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(link: re.Match) -> str:
        text, target = link.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if "://" in target or target.startswith("#") or path.startswith("docs/"):
            return link[0]
        if path == "README.md":
            return f"[{text}]({posixpath.relpath(README, folder)})"
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return re.sub(r"\bREPOSITORY\b", config.repo_url or "REPOSITORY", LINK.sub(replaced, markdown))
