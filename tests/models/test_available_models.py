"""`codesyntax available-models`: what configurations say, of Hub ids and folders, and what it says where there is none.

That it is right for each family is measured in test_architectures.py.
"""

from __future__ import annotations

import json
import re
import time

from click.testing import CliRunner
from support.hub.loopback_hub import LoopbackHub
from test_architectures import FAMILIES

from probing.cli import main
from probing.models.catalogue import _KNOWN, available
from probing.models.load import load
from probing.models.location import DECODER, EMBEDDED, TINY, TINY_DECODER


def configuration(folder, **content):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(content))
    return str(folder)


def blocks(printed: str) -> list[list[str]]:
    """The lines of a table and of what is below it, in parts between blank lines and rules."""
    parts = re.split(r"\n(?:[ ─]*\n)+", printed.strip())
    return [part.splitlines() for part in parts]


def test_the_families_are_those_that_are_tried():
    assert _KNOWN["families"].keys() == {family.model for family in FAMILIES}


def test_a_local_folder_like_the_loaded_model(tiny_model):
    (found,) = available([str(tiny_model)])
    encoder = load(str(tiny_model), max_length=10_000)
    assert (found.family, found.path) == ("bert", encoder.path)
    assert (found.layers, found.heads, found.longest) == (encoder.layers, encoder.heads, encoder.longest) == (2, 3, 512)


def test_what_it_says_of_families(tmp_path):
    """CodeBERT's and Qwen2.5-Coder's sizes as their configurations have them; no other file is there."""
    codebert = configuration(
        tmp_path / "a", model_type="roberta", max_position_embeddings=514, pad_token_id=1, num_hidden_layers=12
    )
    qwen = configuration(
        tmp_path / "b", model_type="qwen2", max_position_embeddings=32768, num_hidden_layers=24, num_attention_heads=14
    )
    t5 = configuration(tmp_path / "c", model_type="t5", n_positions=512, num_layers=12, num_heads=12)
    one, two, three = available([codebert, qwen, t5])
    assert (one.longest, one.layers, one.heads, len(one.directions)) == (512, 12, 12, 2)
    assert (two.longest, two.layers, two.heads, two.directions) == (32768, 24, 14, ("dependent-to-head",))
    assert (three.longest, three.layers, three.heads, three.path) == (None, 12, 12, "captured")


def test_what_cannot_be_probed_or_read_says_why(tmp_path):
    remote = {"model_type": "its-own", "auto_map": {"AutoConfig": "code.Config"}}
    paths = [
        configuration(tmp_path / "a", model_type="mamba"),
        configuration(tmp_path / "b", model_type="vit"),
        configuration(tmp_path / "c", **remote),
        str(tmp_path),
        "nobody/nothing",
    ]
    found = list(available(paths))
    assert [one.model for one in found] == paths
    assert [one.path for one in found] == ["refused", "untested", "unknown", "unknown", "unknown"]
    reasons = ["not between all pairs", "codesyntax doctor", "never run", "config.json", "not in the cache"]
    for one, why in zip(found, reasons, strict=True):
        assert why in one.why
    printed = CliRunner().invoke(main, ["available-models", *paths], catch_exceptions=False)
    assert printed.exit_code == 0
    *_, rows, remarks = blocks(printed.stdout)
    for path, row, remark, why in zip(paths, rows, remarks, reasons, strict=True):
        assert row.strip().startswith(path) and remark.startswith(path) and why in remark


def test_a_configuration_cannot_command_the_terminal(tmp_path):
    """Here: set the title of its window; what may be printed of it stays."""
    (found,) = available([configuration(tmp_path / "a", model_type="odd\x1b]0;title\x07")])
    assert "odd]0;title" in found.why
    assert found.why.isprintable()


def test_a_name_that_no_file_can_have():
    (found,) = available(["n" * 5000])
    assert found.path == "unknown"


def test_without_arguments_every_known_model_has_a_row():
    """From what comes with the package, offline and with an empty cache."""
    printed = CliRunner().invoke(main, ["available-models"], catch_exceptions=False)
    first, second, third, fourth, *others = next(part for part in blocks(printed.stdout) if EMBEDDED in part[0])
    assert third.split() == [TINY_DECODER, "llama", "4", "4", "514", "dependent-to-head", "captured"]
    assert fourth.split()[0] == DECODER
    assert first.split() == [EMBEDDED, "bert", "6", "12", "512", "both", "captured"]
    assert second.split() == [TINY, "modernbert", "4", "4", "512", "both", "captured"]
    assert [line.split()[0] for line in others] == list(_KNOWN["models"])
    assert len(others) > 20
    assert others[0].split() == ["microsoft/codebert-base", "roberta", "12", "12", "512", "both", "captured"]
    assert not any("unknown" in line or "untested" in line for line in others)


def test_refreshing_asks_the_hub_again():
    """Which cannot be reached here."""
    printed = CliRunner().invoke(main, ["available-models", "--refresh"], catch_exceptions=False)
    *_, (first, second, third, fourth, *others), remarks = blocks(printed.stdout)
    remarks = [line for line in remarks if not line.startswith(DECODER)]  # if it is not installed
    assert len(remarks) == len(others)
    assert [one.split()[0] for one in (first, second, third, fourth)] == [EMBEDDED, TINY, TINY_DECODER, DECODER]
    assert [line.split()[0] for line in others] == list(_KNOWN["models"])
    assert all(line.endswith("unknown: not in the cache, and the Hub cannot be reached") for line in remarks)


def test_a_hub_that_does_not_answer_is_asked_once(tmp_path, monkeypatch):
    """Not again after some seconds, as by a download; nothing listens on the port of a Hub that is gone."""
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path)
    printed = CliRunner().invoke(main, ["available-models", "user/here"], catch_exceptions=False)
    assert "user/here" in printed.stdout
    assert "not in the cache, and the Hub cannot be reached" in printed.stdout
    assert waits == []


def test_from_the_hub_only_configurations_are_read(tmp_path, monkeypatch):
    config = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1, "num_attention_heads": 8}
    with LoopbackHub() as hub:
        hub.connect(monkeypatch, tmp_path)
        files = {"config.json": json.dumps(config).encode(), "model.safetensors": b"no weights"}
        hub.add("user/here", files, type="model")
        command = ["available-models", "user/here", "user/none", "--json"]
        here, none = json.loads(CliRunner().invoke(main, command, catch_exceptions=False).stdout)
    assert (here["model"], here["path"], here["longest"], here["heads"]) == ("user/here", "captured", 512, 8)
    assert (none["model"], none["path"], none["why"]) == ("user/none", "unknown", "no such model on the Hub")
    asked = {request.split()[1] for request in hub.requests if "/user/" in request}
    assert asked == {f"/user/{name}/resolve/main/config.json" for name in ("here", "none")}
