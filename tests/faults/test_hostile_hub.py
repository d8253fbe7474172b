"""Hostile servers: each row is what one answers, and why the board of it is refused, in time and without harm."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time

import pytest
from huggingface_hub import constants
from support.hub.loopback_hub import LoopbackHub

from codesyntax_dataset import network
from codesyntax_dataset.errors import CodeSyntaxError, SubmissionError
from probing.publish import board

pytestmark = pytest.mark.slow

LEDGER = f"submissions/user/model/python.attention.{'0' * 12}.{'1' * 12}/one.ledger.parquet"


def hangs(handler):
    handler.hub.stopped.wait(10)
    return True


def hangs_in_a_file(handler):
    if "/resolve/" not in handler.path:
        return False
    handler._send(b"{", {"Content-Length": "100"})
    return hangs(handler)


def sends(data, headers=None):
    def act(handler):
        if "/resolve/" not in handler.path:
            return False
        handler._send(data, headers or {})
        return True

    return act


def a_body_without_end(handler):
    if "/resolve/" not in handler.path:
        return False
    handler._send(b"", {"Content-Length": "", "Transfer-Encoding": "chunked"})
    try:
        for _ in range(2000):  # 128 MB, if the client took them
            handler.wfile.write(b"10000\r\n" + b" " * (1 << 16) + b"\r\n")
            handler.hub.sent = getattr(handler.hub, "sent", 0) + 1
    except OSError:
        handler.close_connection = True
    return True


def lists(*names):
    def act(handler):
        if "/tree/" not in handler.path:
            return False
        files = [{"type": "file", "oid": "0", "size": 2, "path": name} for name in names]
        handler._send(json.dumps(files).encode(), {})
        return True

    return act


SIZE = "should be of size 2 but has size"
SERVERS = {
    "it hangs": (hangs, "the connection to .* failed"),
    "it hangs in a file": (hangs_in_a_file, "the connection to .* failed"),
    "a file larger than listed": (sends(b" " * 100_000), SIZE),
    "a file smaller than listed": (sends(b""), SIZE),
    "a file that explodes": (
        sends(gzip.compress(b" " * 10_000_000), {"Content-Encoding": "gzip"}),
        SIZE,
    ),
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with LoopbackHub() as hub:
        hub.stopped = threading.Event()
        hub.connect(monkeypatch, tmp_path / "cache")
        hub.add("user/results", {LEDGER: b"{}"})
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield hub
        hub.stopped.set()


def hostile(hub, act):
    handler = hub.server.RequestHandlerClass
    usual = handler.do_GET
    handler.do_GET = lambda self: act(self) or usual(self)


@pytest.mark.parametrize("act, reason", SERVERS.values(), ids=SERVERS)
def test_a_hostile_server_is_left_in_time(hub, monkeypatch, act, reason):
    monkeypatch.setattr(network, "LONGEST_WAIT", 0.3)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    hostile(hub, act)
    before = time.monotonic()
    with pytest.raises(CodeSyntaxError, match=reason) as caught:
        board.read(["user/results"], "data")
    assert time.monotonic() - before < 30
    assert "hf_secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name", [*(f"{place}evil.ledger.parquet" for place in ("../../", "/tmp/", "..\\", "\x1b[2J"))]
)
def test_names_that_climb_out_are_left_out_and_printable(name, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile(hub, lists(name))
    with pytest.raises(
        SubmissionError, match=r"evil.ledger.parquet \(expected submissions/USER/MODEL"
    ) as refused:
        board.read(["user/results"], "data")
    assert str(refused.value).isprintable()
    assert not any("evil" in name for _, _, names in os.walk(tmp_path) for name in names)


def test_a_token_does_not_follow_to_another_server(hub):
    seen = []

    def redirects(handler):
        if "/resolve/" not in handler.path:
            return False
        other = hub_of_others.url.replace("127.0.0.1", "localhost")
        handler._send(b"", {"Location": f"{other}/stolen"}, 307)
        return True

    def listens(handler):
        seen.append(handler.headers.get("Authorization"))
        handler._send(b"{}", {})
        return True

    with LoopbackHub() as hub_of_others:
        hostile(hub, redirects)
        hostile(hub_of_others, listens)
        with pytest.raises(SubmissionError, match="boards take"):
            board.read(["user/results"], "data")
    assert seen == [None]
