"""A Hub of our own on 127.0.0.1, as far as our tests need it: the real clients talk to it.

    with LoopbackHub() as hub:
        hub.add("user/name", {"README.md": b"..."})
        run([...], env={**os.environ, "HF_ENDPOINT": hub.url, ...})  # clients read the variable when they are imported
        hub.connect(monkeypatch, tmp_path)  # or the client of this process

Everything lives in memory: a repository is a set of commits, a commit is {path: bytes}. By default every file is
"regular", which works with and without hf_xet; `LoopbackHub(lfs=True)` wants Parquet files as large ones, and clients
then need HF_HUB_DISABLE_XET=1. Who writes needs a token, any but READ_ONLY; `tokens` are those that were seen. `faults`
makes the Hub fail as ordered.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    import pytest

Files = dict[str, bytes]

NOW = "2026-01-01T00:00:00.000Z"
READ_ONLY = "hf_read_only"
"""A token that may not write."""


class Refused(Exception):
    """An answer other than 200; `code` is what tells the client which error to raise."""

    def __init__(
        self, status: int, code: str = "", message: str = "", headers: dict[str, str] | None = None
    ):
        super().__init__(code)
        self.status, self.message, self.headers = status, message, headers or {}


@dataclass
class Fault:
    """What goes wrong at requests that `on`, a regular expression, finds in "METHOD /path".

    The first `after` of them are answered, the next `times` fail: with `status` and `headers`, or, without a status, by
    a connection that breaks in the middle of the request's body.
    """

    on: str
    times: float = 1
    after: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def strikes(self, request: str) -> bool:
        if not re.search(self.on, request):
            return False
        if self.after:
            self.after -= 1
            return False
        self.times -= 1
        return self.times >= 0


@dataclass
class Repository:
    type: str
    name: str
    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)  # sha -> files
    heads: dict[str, str] = field(default_factory=dict)  # revision -> sha
    # revision -> its commits, the last one first
    history: dict[str, list[str]] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)  # paths that were uploaded by LFS
    discussions: list[dict] = field(default_factory=list)

    def commit(self, revision: str, files: Files) -> str:
        sha = hashlib.sha1(
            f"{self.type} {self.name} {revision} {len(self.commits)}".encode()
        ).hexdigest()
        self.commits[sha] = files
        self.heads[revision] = sha
        self.history.setdefault(revision, list(self.history.get("main", []))).insert(0, sha)
        return sha

    def refs(self) -> dict:
        """Its branches, as the Hub tells them without pull requests."""
        branches = [
            {"name": name, "ref": f"refs/heads/{name}", "targetCommit": sha}
            for name, sha in self.heads.items()
            if not name.startswith("refs/")
        ]
        return {"branches": branches, "converts": [], "tags": []}

    def sha(self, revision: str) -> str:
        revision = revision.removeprefix("refs/heads/")
        sha = revision if revision in self.commits else self.heads.get(revision)
        if sha is None:
            raise Refused(404, "RevisionNotFound")
        return sha

    def files(self, revision: str = "main") -> Files:
        return self.commits[self.sha(revision)]

    def oid(self, path: str, data: bytes) -> str:
        return hashlib.sha256(data).hexdigest() if path in self.large else git_oid(data)

    def entry(self, sha: str, path: str) -> dict:
        """What the Hub says of a file or folder."""
        data = self.commits[sha].get(path)
        if data is None:
            return {"type": "directory", "path": path, "size": 0, "oid": git_oid(path.encode())}
        told = {"type": "file", "path": path, "size": len(data), "oid": git_oid(data)}
        if path in self.large:
            told["lfs"] = {"oid": self.oid(path, data), "size": len(data), "pointerSize": 132}
        return told

    def tree(self, sha: str, folder: str, recursive: bool) -> list[dict]:
        prefix = f"{folder}/" if folder else ""
        below = [
            path[len(prefix) :].split("/") for path in self.commits[sha] if path.startswith(prefix)
        ]
        if folder and not below:
            raise Refused(404, "EntryNotFound")
        depths = {
            "/".join(parts[:depth])
            for parts in below
            for depth in range(1, len(parts) + 1 if recursive else 2)
        }
        return [self.entry(sha, prefix + path) for path in sorted(depths)]

    def info(self, sha: str) -> dict:
        return {
            "id": self.name,
            "sha": sha,
            "private": self.private,
            "gated": False,
            "tags": [],
            "downloads": 0,
            "siblings": [{"rfilename": path} for path in sorted(self.commits[sha])],
        }

    def discuss(self, title: str, description: str, author: str, is_pull_request: bool) -> dict:
        """Open a discussion or a pull request, whose revision begins as what main is."""
        number = len(self.discussions) + 1
        first = {"raw": description, "updatedAt": NOW}
        event = {"id": "1", "type": "comment", "createdAt": NOW, "author": {"name": author}}
        discussion = {
            "num": number,
            "title": title,
            "status": "open",
            "isPullRequest": is_pull_request,
            "createdAt": NOW,
            "author": {"name": author},
            "repo": {"name": self.name, "type": self.type},
            "filesWithConflicts": [],
            "changes": {"base": "refs/heads/main"},
            "diff": "",
            "events": [event | {"data": {"edited": False, "hidden": False, "latest": first}}],
        }
        self.discussions.append(discussion)
        if is_pull_request:
            self.heads[f"refs/pr/{number}"] = self.heads["main"]
            self.history[f"refs/pr/{number}"] = list(self.history["main"])
        return discussion


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class LoopbackHub:
    """A Hub at `url`, serving while in a `with` block; `requests` lists what it was asked as "METHOD /path"."""

    def __init__(self, lfs: bool = False) -> None:
        self.lfs = lfs
        self.repositories: dict[tuple[str, str], Repository] = {}  # (type, owner/name)
        self.uploads: dict[str, bytes] = {}  # SHA-256 -> large file
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(
        self,
        name: str,
        files: Files,
        revision: str = "main",
        type: str = "dataset",
        private: bool = False,
    ) -> None:
        """Make `files` the content of the repository `name` (owner/name) at `revision`."""
        self.repositories.setdefault((type, name), Repository(type, name, private)).commit(
            revision, files
        )

    def files(self, name: str, type: str = "dataset", revision: str = "main") -> Files:
        """What is in a repository."""
        return self.repositories[type, name].files(revision)

    def connect(self, patch: pytest.MonkeyPatch, cache: Path) -> None:
        """Let the Hub's clients of this process talk to this Hub, with a `cache` of its own."""
        from datasets import config
        from huggingface_hub import HfFileSystem, constants  # of the environment at their import

        patch.setattr(constants, "ENDPOINT", self.url)
        patch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            self.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_HUB_DISABLE_XET", self.lfs)
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        # it keeps the address of the first Hub, which is gone
        if client := sys.modules.get("transformers.utils.hub"):
            patch.setattr(client, "_hf_api", None, raising=False)
        patch.setattr(config, "HF_ENDPOINT", self.url)
        patch.setattr(config, "HF_HUB_OFFLINE", False)
        HfFileSystem.clear_instance_cache()  # which talk to earlier Hubs

    def __enter__(self) -> LoopbackHub:
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
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
        request = f"{self.command} {unquote(self.path)}"
        with self.hub.lock:
            self.hub.requests.append(request)
            fault = next((fault for fault in self.hub.faults if fault.strikes(request)), None)
            if fault is not None and fault.status is None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0) // 2)
                self.close_connection = True
                return
        body = self._body()
        try:
            if fault is not None:
                raise Refused(fault.status, message="ordered by the test", headers=fault.headers)
            with self.hub.lock:
                self._route(body)
        except Refused as refused:
            headers = {
                "X-Error-Code": str(refused),
                "X-Error-Message": refused.message,
                **refused.headers,
            }
            self._send(b"{}", headers, refused.status)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **headers,
        }.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _json(self, value, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), {}, status)

    def _user(self) -> str:
        """The name of who may write: `user` with every token. Raises 401 without one, 403 with READ_ONLY."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not token:
            raise Refused(401, message="Invalid username or password.")
        self.hub.tokens.add(token)
        if token == READ_ONLY:
            raise Refused(403, message="this token may not write")
        return "user"

    def _route(self, body: bytes) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        name = r"([\w.-]+/[\w.-]+)"
        if match := re.fullmatch(
            rf"/(?:(dataset|space)s/)?{name}/(?:resolve|raw)/([^/]+)/(.+)", url.path
        ):
            self._resolve(
                self._repository(match[1] or "model", match[2]),
                unquote(match[3]),
                unquote(match[4]),
            )
        elif match := re.fullmatch(
            rf"/(?:(dataset|space)s/)?{name}\.git/info/lfs/objects/batch", url.path
        ):
            self._repository(match[1] or "model", match[2])
            self._offer_uploads(json.loads(body)["objects"])
        elif self.command == "PUT" and (match := re.fullmatch("/lfs/([0-9a-f]{64})", url.path)):
            if hashlib.sha256(body).hexdigest() != match[1]:
                raise Refused(400, message="other bytes than announced")
            self.hub.uploads[match[1]] = body
            self._json({})
        elif url.path == "/api/whoami-v2":
            self._json(
                {"type": "user", "name": self._user(), "fullname": "user", "orgs": [], "auth": {}}
            )
        elif url.path == "/api/repos/create":
            self._create(json.loads(body))
        elif url.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif match := re.fullmatch(
            rf"/api/(model|dataset|space)s/{name}/discussions(?:/(\d+))?(?:/(\w+))?", url.path
        ):
            self._discussions(self._repository(match[1], match[2]), match[3], match[4], body)
        elif match := re.fullmatch(rf"/api/(model|dataset|space)s/{name}/refs", url.path):
            self._json(self._repository(match[1], match[2]).refs())
        elif match := re.fullmatch(
            rf"/api/(model|dataset|space)s/{name}(?:/([a-z-]+)/([^/]+)(?:/(.*))?)?", url.path
        ):
            repository = self._repository(match[1], match[2])
            verb, revision, path = (
                match[3] or "revision",
                unquote(match[4] or "main"),
                unquote(match[5] or ""),
            )
            sha = repository.sha(revision)
            if verb == "revision":
                self._json(repository.info(sha))
            elif verb == "tree":
                self._json(
                    repository.tree(
                        sha, path, query.get("recursive", ["false"])[0].lower() == "true"
                    )
                )
            elif verb == "commits":
                commits = repository.history[revision.removeprefix("refs/heads/")]
                told = {"authors": [], "date": NOW, "title": "", "message": ""}
                self._json([{"id": commit, **told} for commit in commits])
            elif verb == "preupload":
                self._preupload(repository, sha, json.loads(body)["files"])
            elif verb == "commit":
                self._commit(repository, revision, "create_pr" in query, body)
            else:
                raise Refused(404, "EntryNotFound")
        else:
            raise Refused(404, "EntryNotFound")

    def _repository(self, type: str, name: str) -> Repository:
        if (type, name) not in self.hub.repositories:
            raise Refused(404, "RepoNotFound", "Repository not found")
        return self.hub.repositories[type, name]

    def _address(self, repository: Repository) -> str:
        kind = "" if repository.type == "model" else f"{repository.type}s/"
        return f"{self.hub.url}/{kind}{repository.name}"

    def _create(self, asked: dict) -> None:
        type, name = (
            asked.get("type", "model"),
            f"{asked.get('organization') or self._user()}/{asked['name']}",
        )
        there = (type, name) in self.hub.repositories
        self._user()
        if not there:
            attributes = {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}
            self.hub.add(name, attributes, type=type, private=asked.get("visibility") == "private")
        self._json({"url": self._address(self.hub.repositories[type, name])}, 409 if there else 200)

    def _resolve(self, repository: Repository, revision: str, path: str) -> None:
        sha = repository.sha(revision)
        if path not in repository.commits[sha]:
            raise Refused(404, "EntryNotFound")
        data, status = repository.commits[sha][path], 200
        headers = {
            "X-Repo-Commit": sha,
            "ETag": f'"{repository.oid(path, data)}"',
            "Accept-Ranges": "bytes",
        }
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), min(int(part[2] or len(data)), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            data, status = data[first : last + 1], 206
        self._send(data, headers, status)

    def _preupload(self, repository: Repository, sha: str, files: list[dict]) -> None:
        self._user()
        answers = []
        for path in (file["path"] for file in files):
            data = repository.commits[sha].get(path)
            answers.append(
                {
                    "path": path,
                    "uploadMode": "lfs"
                    if self.hub.lfs and path.endswith(".parquet")
                    else "regular",
                    "shouldIgnore": False,
                    "oid": None if data is None else repository.oid(path, data),
                }
            )
        self._json({"files": answers})

    def _offer_uploads(self, objects: list[dict]) -> None:
        self._user()
        answers = []
        for asked in objects:
            answer = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self.hub.uploads:
                answer["actions"] = {
                    "upload": {"href": f"{self.hub.url}/lfs/{asked['oid']}", "header": {}}
                }
            answers.append(answer)
        self._json({"transfer": "basic", "objects": answers})

    def _commit(self, repository: Repository, revision: str, create_pr: bool, body: bytes) -> None:
        user = self._user()
        files, large = dict(repository.files(revision)), set()
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                header = value
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.uploads:
                    raise Refused(400, message=f"{value['path']} was not uploaded")
                files[value["path"]] = self.hub.uploads[value["oid"]]
                large.add(value["path"])
            elif line["key"] == "deletedFile":
                if files.pop(value["path"], None) is None:
                    raise Refused(404, "EntryNotFound", "A file with this name doesn't exist")
            else:
                raise Refused(400, message=f"{line['key']} is not done here")
        repository.large |= large
        answer = {}
        if create_pr:
            opened = repository.discuss(
                header["summary"], header.get("description", ""), user, is_pull_request=True
            )
            revision = f"refs/pr/{opened['num']}"
            answer["pullRequestUrl"] = f"{self._address(repository)}/discussions/{opened['num']}"
        sha = repository.commit(revision, files)
        self._json(
            {"commitOid": sha, "commitUrl": f"{self._address(repository)}/commit/{sha}", **answer}
        )

    def _discussions(
        self, repository: Repository, number: str | None, verb: str | None, body: bytes
    ) -> None:
        if self.command == "GET" and number is None:
            found = repository.discussions
            self._json({"count": len(found), "start": 0, "discussions": found})
            return
        user = self._user() if self.command == "POST" else ""
        asked = json.loads(body or b"{}")
        if number is None:
            opened = repository.discuss(
                asked["title"], asked.get("description", ""), user, bool(asked.get("pullRequest"))
            )
            self._json(opened)
            return
        if not 0 < int(number) <= len(repository.discussions):
            raise Refused(404, "EntryNotFound", "no such discussion")
        discussion = repository.discussions[int(number) - 1]
        if verb == "merge":
            repository.commit("main", repository.files(f"refs/pr/{number}"))
            discussion["status"] = "merged"
        elif verb == "status":
            discussion["status"] = asked["status"]
            event = {"id": "2", "type": "status-change", "createdAt": NOW, "author": {"name": user}}
            self._json({"newStatus": event | {"data": {"status": asked["status"]}}})
            return
        elif verb is not None:
            raise Refused(404, "EntryNotFound")
        self._json(discussion)
