"""Pictures of a page, taken by a browser without a screen: `python -m campaigns.screens PAGE FOLDER`.

The whole page at the widths of a telephone and of a desktop, light and dark; and the pictures of README.md: `page.png`,
the first screen, and `figure2.png`.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

WIDTHS, HEIGHT, FIRST_SCREEN = (390, 1440), 4000, (1440, 900)  # pixels
COLORS = 256  # of a picture in README.md: with 64 two operators had one colour
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
SCHEMES = {"light": 1, "dark": 0}  # the browser's numbers
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND"),
    "--virtual-time-budget=10000",  # milliseconds that pass as fast as the page is done
)


def photograph(page: Path, output: Path, size: tuple[int, int], scheme: str = "light") -> None:
    """Write what a window of `size` (pixels) shows of a page as PNG; RuntimeError without a browser or a picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise RuntimeError("no chromium or google-chrome on the path; install one")
    with tempfile.TemporaryDirectory() as profile:
        options = [f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"]
        options += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", f"--screenshot={output.resolve()}"]
        command = [browser, *OPTIONS, *options, page.resolve().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if not output.is_file():
        raise RuntimeError(f"the browser took no picture of {page}: {done.stderr[-500:]}")


def main(page: Path, folder: Path) -> None:
    """Write the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        for scheme in SCHEMES:
            photograph(page, folder / f"{page.stem}-{width}-{scheme}.png", (width, HEIGHT), scheme)
    photograph(page, folder / "page.png", FIRST_SCREEN)
    (figure,) = page.parent.glob("figures/figure2_*.png")
    for source, name in ((folder / "page.png", "page.png"), (figure, "figure2.png")):
        with Image.open(source) as picture:
            picture.convert("RGB").quantize(COLORS).save(folder / name, optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
