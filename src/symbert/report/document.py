"""A table as a file of its own that a browser shows, and the part of it that goes into the page."""

from string import Template

from symbert.report.stylesheet import STYLESHEET

DOCUMENT = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
$body</body>
</html>
""")


def standing_alone(body: str, title: str) -> str:
    """An HTML document of `body`, which ends with a line break; `title` is plain text without HTML's characters."""
    return DOCUMENT.substitute(title=title, style=STYLESHEET, body=body)


def body_of(document: str) -> str:
    """What `standing_alone` made a document of."""
    return document.partition("<body>\n")[2].rpartition("</body>\n")[0]
