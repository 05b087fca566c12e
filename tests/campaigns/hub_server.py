"""The hub in small, for uploads: repositories with branches, whose files are those of the last commit that has them."""

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Repositories = dict[str, dict[str, dict[str, bytes]]]  # files by name, by branch, by repository


class Answer(BaseHTTPRequestHandler):
    """A connection of a client of huggingface_hub."""

    protocol_version = "HTTP/1.1"
    repositories: Repositories

    def do_POST(self) -> None:
        body, path = self._body(), self.path.partition("?")[0]
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            status = 409 if name in self.repositories else 200
            self.repositories.setdefault(name, {"main": {}})
            return self._say(status, {"url": f"{self._address}/{name}", "id": name})
        if path == "/api/validate-yaml":
            return self._say(200, {"errors": [], "warnings": []})
        if not (asked := re.fullmatch(r"/api/models/(.+?/.+?)/(branch|preupload|commit)/(.+)", path)):
            return self._say(404, {"error": "not here"})
        name, verb, branch = asked.groups()
        branches = self.repositories[name]
        if verb == "branch":
            branches[branch] = {}
            return self._say(200, {})
        if verb == "preupload":
            wanted = json.loads(body)["files"]
            modes = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in wanted]
            return self._say(200, {"files": modes})
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                branches[branch][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        commit = self._commit(branches[branch])
        address = f"{self._address}/{name}/commit/{commit}"
        return self._say(200, {"success": True, "commitOid": commit, "commitUrl": address, "hookOutput": ""})

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        asked = re.fullmatch(r"(?:/api/models)?/(.+?/.+?)/(revision|resolve)/(.+?)(?:/(.+))?", path)
        if asked is None or asked[1] not in self.repositories:
            return self._say(404, {"error": "not here"})
        branches = self.repositories[asked[1]]
        by_commit = {self._commit(files): files for files in branches.values()}
        files = branches.get(asked[3], by_commit.get(asked[3]))
        if files is None:
            return self._say(404, {"error": "no such revision"}, "RevisionNotFound")
        if asked[2] == "revision":
            siblings = [{"rfilename": file} for file in files]
            return self._say(200, {"id": asked[1], "sha": self._commit(files), "siblings": siblings})
        if asked[4] not in files:
            return self._say(404, {"error": "no such file"}, "EntryNotFound")
        content = files[asked[4]]
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": self._commit(files)}
        return self._send(200, content, headers)

    do_HEAD = do_GET

    @property
    def _address(self) -> str:
        return "http://{}:{}".format(*self.server.server_address)

    @staticmethod
    def _commit(files: dict[str, bytes]) -> str:
        return hashlib.sha1(b"".join(name.encode() + content for name, content in sorted(files.items()))).hexdigest()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _say(self, status: int, value: object, error: str = "") -> None:
        headers = {"Content-Type": "application/json", **({"X-Error-Code": error} if error else {})}
        self._send(status, json.dumps(value).encode(), headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *arguments) -> None:
        pass


@contextmanager
def hub_server() -> Iterator[tuple[str, Repositories]]:
    """The address of a hub on this machine, and what it has."""
    repositories: Repositories = {}
    kind = type("Answer", (Answer,), {"repositories": repositories})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield "http://{}:{}".format(*server.server_address), repositories
    finally:
        server.shutdown()
        thread.join()
