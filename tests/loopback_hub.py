"""A Hub of our own on 127.0.0.1, as far as our tests need it: real clients read repositories from it and upload to it.

    with LoopbackHub() as hub:
        hub.add("user/name", {"README.md": b"..."})
        run([...], env={**os.environ, "HF_ENDPOINT": hub.url, ...})  # clients read the variable when they are imported

Everything lives in memory: a repository is a set of commits, a commit is {path: bytes}. Every file is "regular", never
LFS, which works with and without hf_xet. Only `dataset` repositories; there are no users, any token may write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

Files = dict[str, bytes]


class Refused(Exception):
    """An answer other than 200; `code` is what tells the client which error to raise."""

    def __init__(self, status: int, code: str):
        super().__init__(code)
        self.status = status


@dataclass
class Repository:
    commits: dict[str, Files] = field(default_factory=dict)  # sha -> files
    heads: dict[str, str] = field(default_factory=dict)  # revision -> sha

    def commit(self, revision: str, files: Files) -> str:
        sha = hashlib.sha1(f"{revision} {len(self.commits)}".encode()).hexdigest()
        self.commits[sha] = files
        self.heads[revision] = sha
        return sha

    def sha(self, revision: str) -> str:
        sha = revision if revision in self.commits else self.heads.get(revision)
        if sha is None:
            raise Refused(404, "RevisionNotFound")
        return sha

    def entry(self, sha: str, path: str) -> dict:
        """What the Hub says of a file or folder."""
        data = self.commits[sha].get(path)
        if data is None:
            return {"type": "directory", "path": path, "size": 0, "oid": git_oid(path.encode())}
        return {"type": "file", "path": path, "size": len(data), "oid": git_oid(data)}


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class LoopbackHub:
    """A Hub at `url`, serving while in a `with` block; `requests` lists what it was asked as "METHOD /path"."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[str] = []
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, repository: str, files: Files, revision: str = "main") -> None:
        """Make `files` the content of `repository` (owner/name) at `revision`."""
        self.repositories.setdefault(repository, Repository()).commit(revision, files)

    def __enter__(self) -> LoopbackHub:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: LoopbackHub

    def log_message(self, *arguments) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.requests.append(f"{self.command} {unquote(self.path)}")
        try:
            self._route(body)
        except Refused as refused:
            self._send(b"{}", {"X-Error-Code": str(refused)}, refused.status)

    do_GET = do_HEAD = do_POST = _handle

    def _send(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _json(self, value) -> None:
        self._send(json.dumps(value).encode(), {})

    def _route(self, body: bytes) -> None:
        url = urlsplit(self.path)
        name = r"([\w.-]+/[\w.-]+)"
        if match := re.fullmatch(rf"/datasets/{name}/resolve/([^/]+)/(.+)", url.path):
            self._resolve(self._repository(match[1]), unquote(match[2]), unquote(match[3]))
        elif url.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization', 'user')}/{asked['name']}"
            self.hub.add(name, {})
            self._json({"url": f"{self.hub.url}/datasets/{name}"})
        elif url.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif match := re.fullmatch(rf"/api/datasets/{name}(?:/([a-z-]+)/([^/]+)(?:/(.*))?)?", url.path):
            repository = self._repository(match[1])
            verb, revision, path = match[2] or "revision", unquote(match[3] or "main"), unquote(match[4] or "")
            sha = repository.sha(revision)
            if verb == "revision":
                self._json(self._info(match[1], repository, sha))
            elif verb == "tree":
                self._json(
                    _tree(repository, sha, path, parse_qs(url.query).get("recursive", ["false"])[0].lower() == "true")
                )
            elif verb == "preupload":
                files = [
                    {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for file in json.loads(body)["files"]
                ]
                self._json({"files": files})
            elif verb == "commit":
                self._commit(match[1], repository, revision, body)
            else:
                raise Refused(404, "EntryNotFound")
        else:
            raise Refused(404, "EntryNotFound")

    def _repository(self, name: str) -> Repository:
        if name not in self.hub.repositories:
            raise Refused(404, "RepoNotFound")
        return self.hub.repositories[name]

    def _resolve(self, repository: Repository, revision: str, path: str) -> None:
        sha = repository.sha(revision)
        if path not in repository.commits[sha]:
            raise Refused(404, "EntryNotFound")
        data, status = repository.commits[sha][path], 200
        headers = {"X-Repo-Commit": sha, "ETag": f'"{git_oid(data)}"', "Accept-Ranges": "bytes"}
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), min(int(part[2] or len(data)), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], 206
        self._send(data, headers, status)

    def _info(self, name: str, repository: Repository, sha: str) -> dict:
        siblings = [{"rfilename": path} for path in sorted(repository.commits[sha])]
        return {
            "id": name,
            "sha": sha,
            "private": False,
            "gated": False,
            "tags": [],
            "downloads": 0,
            "siblings": siblings,
        }

    def _commit(self, name: str, repository: Repository, revision: str, body: bytes) -> None:
        files = dict(repository.commits[repository.sha(revision)])
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] != "header":
                raise Refused(400, f"{line['key']} is not done here")
        sha = repository.commit(revision, files)
        self._json({"commitOid": sha, "commitUrl": f"{self.hub.url}/datasets/{name}/commit/{sha}"})


def _tree(repository: Repository, sha: str, folder: str, recursive: bool) -> list[dict]:
    prefix = f"{folder}/" if folder else ""
    below = [path[len(prefix) :].split("/") for path in repository.commits[sha] if path.startswith(prefix)]
    if folder and not below:
        raise Refused(404, "EntryNotFound")
    depths = {"/".join(parts[:depth]) for parts in below for depth in range(1, len(parts) + 1 if recursive else 2)}
    return [repository.entry(sha, prefix + path) for path in sorted(depths)]
