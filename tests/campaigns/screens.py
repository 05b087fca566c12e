"""Pictures of pages, taken by a browser without a screen.

`python -m campaigns.screens PAGE FOLDER` takes the whole page at the widths of a telephone and of a desktop;
`python -m campaigns.screens PAGE --readme FOLDER` takes the two pictures of README.md from the report of the demo.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from campaigns.browser import find_browser

WIDTHS = (390, 1440)  # pixels
FIRST_SCREEN = (1440, 900)
COLORS = 256  # of a picture in README.md: with 64 two operators had one colour
SCHEMES = {"light": 1, "dark": 0}  # the browser's numbers
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=10000",  # milliseconds that pass as fast as the page is done
)


def photograph(page: Path, output: Path, size: tuple[int, int], scheme: str = "light") -> None:
    """Write what a window of `size` (pixels) shows of a page as PNG; RuntimeError without a browser or a picture."""
    browser = find_browser()
    if browser is None:
        raise RuntimeError("no chromium or google-chrome on the path; install one")
    width, height = size
    with tempfile.TemporaryDirectory() as profile:
        options = [
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--screenshot={output.resolve()}",
        ]
        done = subprocess.run(
            [browser, *OPTIONS, *options, page.resolve().as_uri()], capture_output=True, text=True, timeout=120
        )
    if not output.is_file():
        raise RuntimeError(f"the browser took no picture of {page}: {done.stderr[-500:]}")


def photograph_all(page: Path, folder: Path, height: int) -> list[Path]:
    """Write the pictures of a page at both widths in both schemes; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for width in WIDTHS:
        for scheme in SCHEMES:
            pictures.append(folder / f"{page.stem}-{width}-{scheme}.png")
            photograph(page, pictures[-1], (width, height), scheme)
    return pictures


def shrink(source: Path, output: Path) -> None:
    """Write a picture with few colours."""
    with Image.open(source) as picture:
        picture.convert("RGB").quantize(COLORS).save(output, optimize=True)


def illustrate(page: Path, folder: Path) -> None:
    """Write `page.png`, the first screen of a report, and `figure2.png`, the Figure 2 beside it."""
    with tempfile.TemporaryDirectory() as temporary:
        screen = Path(temporary) / "page.png"
        photograph(page, screen, FIRST_SCREEN)
        shrink(screen, folder / "page.png")
    (figure,) = page.parent.glob("figures/figure2_*.png")
    shrink(figure, folder / "figure2.png")


def main() -> None:
    """Take pictures as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", action="store_true", help="the pictures of README.md instead")
    parser.add_argument("--height", type=int, default=4000, help="of the whole page, in pixels")
    options = parser.parse_args()
    if options.readme:
        illustrate(options.page, options.folder)
        return
    for picture in photograph_all(options.page, options.folder, options.height):
        print(picture)


if __name__ == "__main__":
    sys.exit(main())
