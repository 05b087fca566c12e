"""Pages as a browser shows them: opened from the disk, without any network, and looked at by a script."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--allow-file-access-from-files",  # a page may look into its frames
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=120000",  # milliseconds that pass as fast as the page is done
    "--dump-dom",
)
LOOK = """
const pause = () => new Promise(done => setTimeout(done, 100));
const until = async (find, tries = 100) => {
  for (let found; tries--; await pause()) if ((found = find())) return found;
  throw new Error(`never there: ${find}`);
};
const look = view => ({
  text: view.document.body.innerText,
  tables: view.document.querySelectorAll("table").length,
  rows: view.document.querySelectorAll("tbody tr").length,
  pictures: [...view.document.images].map(image => image.complete ? image.naturalWidth : 0),
  color: view.getComputedStyle(view.document.querySelector("figcaption") || view.document.body).color,
  asked: view.performance.getEntriesByType("resource").map(entry => entry.name),
});
const tell = seen => {
  document.body.innerHTML = '<pre id="seen"></pre>';
  document.querySelector("#seen").textContent = JSON.stringify(seen);
};
"""


def find_browser() -> str | None:
    """The first browser on the path that shows pages without a screen."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def see(page: Path, steps: str, folder: Path) -> Any:
    """What a script sees that runs in `page`: `steps` are JavaScript that ends with `tell(something)`."""
    script = f"<script>{LOOK} (async () => {{ {steps} }})().catch(error => tell({{error: error.stack}}));</script>"
    driven = page.with_name(f"driven-{page.name}")
    driven.write_text(page.read_text(encoding="utf-8") + script, encoding="utf-8")
    command = [find_browser(), *OPTIONS, f"--user-data-dir={folder / 'profile'}", driven.as_uri()]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    driven.unlink()
    told = re.search(r'<pre id="seen">(.*)</pre></body>', done.stdout, re.S)
    assert told is not None, f"the script did not come to its end: {done.stdout[-2000:]}"
    seen = json.loads(html.unescape(told[1]))
    assert "error" not in seen, seen["error"]
    return seen
