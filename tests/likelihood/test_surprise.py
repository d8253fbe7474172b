"""Surprisal by node type: scores against a plain loop, controls by hand, an untrained twin, shards, verification, report."""

from __future__ import annotations

from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
import transformers
from support.commands import run
from support.models.byte_tokenizer import byte_tokenizer
from support.models.minimal_pairs import LONGEST, tiny_decoder
from support.models.random_models import byte_model

from codesyntax_dataset.errors import LedgerError, ModelError, UnknownName
from codesyntax_dataset.pairs.rivals import NGrams, windows
from probing import surprise
from probing.evidence.scores import scores
from probing.evidence.verify import verify
from probing.instruments.likelihood.likelihood import controls_of
from probing.instruments.likelihood.result import (
    LEAST_NODES,
    ROLES,
    SurprisalLedger,
    SurprisalResult,
)
from probing.models.location import TINY_DECODER
from probing.report.report import report
from probing.report.results import parts

BYTES = byte_tokenizer()

CODE = "def f(a):\n  if (a):\n    return (a)\n"
TOKENS = "def f ( a ) : if ( a ) : return ( a )".split()
OTHER = "def f(b):\n  return b\n"
OTHER_TOKENS = "def f ( b ) : return b".split()
KINDS = ["if_statement", "parameters", "parenthesized_expression", "return_statement"]

MATCHED = {
    # node type, node, role -> the tokens, and their controls: as many bytes, within 3 tokens, the nearest of those most
    # like it in frequency; `(`, `a` and `)` stand three times, `:` twice, the others once
    ("if_statement", 0, "closing"): ([14], [13]),
    ("if_statement", 0, "all"): ([7, 8], [4, 5]),
    ("parameters", 0, "first"): ([2], [3]),
    ("parameters", 0, "closing"): ([4], [3]),
    ("parameters", 0, "all"): ([2, 3, 4], [5, 5, 7]),
    ("parenthesized_expression", 0, "first"): ([7], [8]),
    ("parenthesized_expression", 0, "closing"): ([9], [8]),
    ("parenthesized_expression", 0, "all"): ([7, 8, 9], [4, 10, 10]),
    ("parenthesized_expression", 1, "first"): ([12], [13]),
    ("parenthesized_expression", 1, "closing"): ([14], [13]),
    ("parenthesized_expression", 1, "all"): ([12, 13], [10, 10]),
    ("return_statement", 0, "closing"): ([14], [13]),
    ("return_statement", 0, "all"): ([12, 13], [9, 10]),
}
UNMATCHED = {"first": {"if_statement": 1, "return_statement": 1}, "closing": {}, "all": {}}


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return tiny_decoder(tmp_path_factory.mktemp("models") / "decoder")


def functions(*codes):
    empty = {"token_start": [], "token_end": [], "relations": []}
    return datasets.Dataset.from_list(
        [{"id": at, "code": code, **empty} for at, code in enumerate(codes)]
    )


@torch.inference_mode()
def bits_of_bytes(folder, text):
    """The surprisal of each byte, from a forward pass over those before it."""
    model, ids = transformers.AutoModelForCausalLM.from_pretrained(folder).eval(), [0]
    bits = []
    for byte in BYTES(text, add_special_tokens=False)["input_ids"]:
        logits = model(torch.tensor([ids])).logits[0, -1].double()
        bits.append(float(torch.logsumexp(logits, 0) - logits[byte]) / np.log(2))
        ids.append(byte)
    return bits


@pytest.mark.slow
def test_equals_a_plain_loop(decoder):
    """Surprisal to 1e-5, controls by hand, 5-grams of the other half."""
    result = surprise(decoder, functions(CODE), node_types=KINDS)
    assert result.unmatched == UNMATCHED
    bits, start, of_token = bits_of_bytes(decoder, CODE), 0, []
    for token in TOKENS:
        start = CODE.index(token, start)
        of_token.append(sum(bits[start : start + len(token)]))
        start += len(token)
    frequency = [np.log2(TOKENS.count(token)) for token in TOKENS]
    found = {
        (KINDS[row["node_type"]], row["node"], ROLES[row["role"]]): row
        for row in result.ledger.rows
    }
    assert found.keys() == MATCHED.keys()
    for name, both in MATCHED.items():
        for tokens, of in zip(both, ("", "control_")):
            row = found[name]
            assert row[f"{of}bits"] == pytest.approx(
                np.mean([of_token[token] for token in tokens]), abs=1e-5
            )
            assert row[f"{of}frequency"] == pytest.approx(
                np.mean([frequency[token] for token in tokens]), abs=1e-5
            )
            assert row[f"{of}place"] == pytest.approx(np.mean(tokens) / 15, abs=1e-5)
    means = result.node_types["first"]["parenthesized_expression"]
    assert means.nodes == 2
    assert means.tokens["bits"] == pytest.approx((of_token[7] + of_token[12]) / 2, abs=1e-5)


@pytest.mark.parametrize(
    "more_frequent, later, control", [(1, 0.25, 1), (1.01, 0, -1), (0, 0.26, -1)]
)
def test_controls_are_at_most_twice_as_frequent_and_a_quarter_apart(more_frequent, later, control):
    like = np.array([[0, 3, 0.5], [9, 3 + more_frequent, 0.5 + later]])
    function = SimpleNamespace(like=like, first=np.arange(2), last=np.arange(2))
    size = function.last - function.first
    assert controls_of(function, np.array([0]), size).tolist() == [control]


def test_5_grams_read_the_other_half(decoder):
    result = surprise(decoder, functions(OTHER, CODE), node_types=["parameters"])
    for index, own, other in ((0, OTHER_TOKENS, TOKENS), (1, TOKENS, OTHER_TOKENS)):
        bits = -NGrams(windows(other)).log_probabilities(windows(own)) / np.log(2)
        row = result.ledger.rows[
            (result.ledger.rows["function"] == index) & (result.ledger.rows["role"] == 0)
        ]
        assert row["grams"].tolist() == pytest.approx([bits[2]], abs=1e-5)


@pytest.mark.slow
def test_what_is_left_out(decoder):
    codes = functions(CODE, "def f(:\n", "x = 1\n", "f(" + "a, " * LONGEST + ")\n")
    result = surprise(decoder, codes, node_types=KINDS)
    assert result.skips == {
        f"more than {LONGEST} sub-tokens": 1,
        "does not parse": 1,
        "no node with a control": 1,
    }
    with pytest.raises(LedgerError, match="no function of memory.* has a node"):
        surprise(decoder, functions("x = 1\n"), node_types=KINDS)
    with pytest.raises(UnknownName, match="if_statement"):
        surprise(decoder, codes, node_types=["if_statment"])
    with pytest.raises(UnknownName, match="random-weights"):
        surprise(decoder, codes, control="spans")


def test_masked_language_models_are_refused(tmp_path):
    with pytest.raises(ModelError, match="decoders"):
        surprise(byte_model(tmp_path, LONGEST), functions(CODE))


# --- a real one


@pytest.fixture(scope="module")
def folder(dataset_folder, tmp_path_factory):
    """A run of the embedded decoder, and one of its untrained twin, in 25 functions."""
    place = tmp_path_factory.mktemp("surprised")
    for control in ("", "--control random-weights"):
        asked = (TINY_DECODER, "--data", dataset_folder, "--sample 25 --output", place, control)
        result = run("surprise", *asked)
        assert "if_statement" in result.stdout
    return place


def of_folder(folder, twin):
    (file,) = (file for file in folder.glob("*.json") if ("random-weights" in file.name) == twin)
    return SurprisalResult.load(file)


def mean_gain(result, role):
    counted = [of for of in result.node_types[role].values() if of.nodes >= LEAST_NODES]
    return float(np.mean([of.controls["bits"] - of.tokens["bits"] for of in counted]))


@pytest.mark.slow
def test_an_untrained_twin_gains_nothing(folder):
    """A trained one foresees with what a statement begins, and what follows the name of a function."""
    trained, twin = (of_folder(folder, untrained) for untrained in (False, True))
    for role in ROLES:
        assert abs(mean_gain(twin, role)) < 0.3
    for name in ("if_statement", "parameters"):
        both = [result.node_types["first"][name] for result in (trained, twin)]
        gains = [of.controls["bits"] - of.tokens["bits"] for of in both]
        assert gains[0] > 0.5 > gains[1]
    for of in (
        of
        for each in trained.node_types.values()
        for of in each.values()
        if of.nodes >= LEAST_NODES
    ):
        assert abs(of.tokens["frequency"] - of.controls["frequency"]) < 0.5
        assert abs(of.tokens["place"] - of.controls["place"]) < 0.15


@pytest.mark.slow
def test_verified_and_forged(folder, dataset_folder, tmp_path):
    honest = of_folder(folder, False)
    (file,) = (file for file in folder.glob("*.json") if "random-weights" not in file.name)
    assert verify(file, data=dataset_folder).accepted
    for name, change in (("control_grams", 0.1), ("node", 1)):
        rows = honest.ledger.rows.copy()
        rows[name] += change
        SurprisalResult.from_ledger(
            SurprisalLedger(honest.ledger.names, rows, honest.ledger.settings)
        ).save(tmp_path)
        forged = verify(next(tmp_path.glob("*.json")), data=dataset_folder)
        assert not forged.accepted


@pytest.mark.slow
def test_tables_and_report(folder, tmp_path):
    result = of_folder(folder, False)
    *tables, signature = parts(result)
    tables = [part for part in tables if not isinstance(part, str)]
    assert signature == result.signature
    assert len(tables) == 3
    first = tables[0]
    row = next(row for row in first.rows if row[0] == "if_statement")
    of = result.node_types["first"]["if_statement"]
    assert row[1] == of.nodes
    assert row[4][0] == pytest.approx(of.controls["bits"] - of.tokens["bits"])
    assert row[4][1] < row[4][0] < row[4][2]
    assert first.totals[0][4][0] == pytest.approx(mean_gain(result, "first"))
    gain, of_grams, over = (cell[0] for cell in first.totals[0][4:7])
    assert over == pytest.approx(gain - of_grams)
    page = report([folder], tmp_path / "report").read_text()
    assert result.title in page
    assert of_folder(folder, True).title in page


@pytest.mark.slow
def test_the_frame_names_the_token_of_a_node(folder):
    result = of_folder(folder, False)
    frame = scores(result)
    scored = frame[(frame["system"] == "node") & (frame["measure"] == "bits")]
    for role, nodes in result.node_types.items():
        (row,) = scored[(scored["rule"] == role) & (scored["group"] == "if_statement")].itertuples()
        assert row.value == pytest.approx(nodes["if_statement"].tokens["bits"])
