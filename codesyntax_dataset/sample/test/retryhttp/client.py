"""A small HTTP client on top of urllib that tries again."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import urllib.error
import urllib.parse
import urllib.request

logger = logging.getLogger(__name__)

RETRIABLE = {408, 425, 429, 500, 502, 503, 504}


class HttpError(Exception):
    """A response with a status of 400 or more."""


def build_url(base: str, *parts: str, **query) -> str:
    """Join path segments and a query string to a base address.

    Segments are quoted; query arguments that are None are left out and lists are
    repeated, in the order given.

    :return: the address as a string
    """
    path = "/".join(urllib.parse.quote(str(part), safe="") for part in parts)
    url = base.rstrip("/") + "/" + path if path else base
    pairs = {name: value for name, value in query.items() if value is not None}
    if not pairs:
        return url
    joint = "&" if "?" in url else "?"
    return url + joint + urllib.parse.urlencode(pairs, doseq=True)


def parse_content_type(header: str) -> tuple[str, dict[str, str]]:
    """Split a Content-Type header into the media type and its parameters.

    :param header: for example `text/html; charset="utf-8"`
    """
    media_type, *rest = header.split(";")
    parameters = {}
    for item in rest:
        name, found, value = item.partition("=")
        if not found:
            continue
        parameters[name.strip().lower()] = value.strip().strip('"')
    return media_type.strip().lower(), parameters


def parse_link_header(header: str) -> dict[str, str]:
    """Read the relations of a Link header, as paginated interfaces send them.

    :return: relation (`next`, `last`, ...) to address
    """
    links = {}
    for entry in header.split(","):
        target, *attributes = entry.split(";")
        target = target.strip()
        if not (target.startswith("<") and target.endswith(">")):
            raise ValueError(f"expected <address> in a Link header, got {target!r}")
        for attribute in attributes:
            key, _, value = attribute.strip().partition("=")
            if key == "rel":
                links[value.strip('"')] = target[1:-1]
    return links


class Client:
    """Sends requests to one service."""

    def __init__(self, base: str, token: str | None = None, opener=None, timeout: float = 10.0):
        """Remember where the service lives and how to authenticate."""
        self.base = base
        self.token = token
        self.timeout = timeout
        self.opener = opener or urllib.request.build_opener()

    def headers(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        """The headers of each request, with the caller's own on top."""
        headers = {"Accept": "application/json", "User-Agent": "retryhttp/1.2"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        headers.update(extra or {})
        return headers

    def request(self, method: str, path: str, body=None, **query):
        """Send one request and decode the answer.

        :param method: `GET`, `POST`, ...
        :param path: relative to the base address
        :param body: anything json can write, sent as the request's body
        :return: the decoded document; None if the answer is empty
        :raises HttpError: on a status of 400 or more
        """
        data = None
        headers = self.headers()
        if body is not None:
            data = json.dumps(body).encode("utf-8")
            headers["Content-Type"] = "application/json"
        url = build_url(self.base, path, **query)
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        try:
            response = self.opener.open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            detail = error.read(500).decode("utf-8", "replace")
            retriable = error.code in RETRIABLE
            logger.info("%s %s: status %d (retriable: %s)", method, url, error.code, retriable)
            raise HttpError(f"{method} {url}: {error.code} {detail}") from error
        with response:
            text = response.read()
        return json.loads(text) if text else None

    def pages(self, path: str, size: int = 100, limit: int | None = None):
        """Iterate over the items of a listing, fetching page after page.

        A page shorter than asked for is the last one.
        """
        number = 1
        count = 0
        while limit is None or count < limit:
            items = self.request("GET", path, page=number, per_page=size)
            for item in items:
                if limit is not None and count >= limit:
                    return
                yield item
                count += 1
            if len(items) < size:
                break
            number += 1

    def download(self, path: str, target: str, chunk: int = 65536, progress=None) -> int:
        """Save a file next to its target, then move it into place.

        :param path: what to fetch, relative to the base address
        :param target: where the file goes; untouched unless all of it arrived
        :param chunk: bytes to read at a time
        :param progress: called with the number of bytes so far
        :return: the size in bytes
        """
        folder = os.path.dirname(target) or "."
        handle, partial = tempfile.mkstemp(dir=folder, suffix=".part")
        size = 0
        try:
            with os.fdopen(handle, "wb") as out, self.opener.open(build_url(self.base, path)) as response:
                while True:
                    block = response.read(chunk)
                    if not block:
                        break
                    out.write(block)
                    size += len(block)
                    if progress is not None:
                        progress(size)
            os.replace(partial, target)
        except BaseException:
            os.unlink(partial)
            raise
        return size


async def gather_limited(coroutines, limit: int = 8) -> list:
    """Await many coroutines, no more than `limit` of them at a time.

    :return: the results in the order of the coroutines
    """
    gate = asyncio.Semaphore(limit)

    async def guarded(coroutine):
        async with gate:
            return await coroutine

    return await asyncio.gather(*[guarded(coroutine) for coroutine in coroutines])
