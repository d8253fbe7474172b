"""A masking run from end to end: a planted model comes back, counts add up, the same bytes whatever the batches."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, defaultdict

import numpy as np
import pytest
from support.commands import run
from support.files import contents
from support.models.byte_tokenizer import all_but, byte_tokenizer
from support.models.random_models import byte_model
from support.references.plain_masks import mask_positions

from codesyntax_dataset.errors import ArgumentError, CodeSyntaxError, LedgerError, UnknownName
from codesyntax_dataset.folder import read_split
from probing import mask
from probing.instruments.masking import mask as job
from probing.instruments.masking import restore
from probing.instruments.masking.masking import seed_of
from probing.instruments.masking.result import (
    FILLED,
    HITS,
    SIMILARITIES,
    MaskingLedger,
    MaskResult,
)
from probing.models import cache_dir
from probing.models.masked import MaskedModel

pytestmark = pytest.mark.slow

TYPES = ["if_statement", "return_statement", "parameters", "while_statement"]
LONGEST = 700
RESULTS = "*[0-9a-f].json"
"""What ends with a digest: no examples."""
RUN = {"node_types": TYPES, "draws": 3, "limit": 8, "max_length": LONGEST}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a masked language model of two layers and random weights, which reads bytes."""
    return byte_model(tmp_path_factory.mktemp("models") / "masked", LONGEST)


@pytest.fixture(scope="module")
def whole(model, dataset_folder, tmp_path_factory):
    """The files of a run without any interruption."""
    folder = tmp_path_factory.mktemp("whole")
    mask(model, dataset_folder, **RUN, output=folder)
    return contents(folder)


@pytest.fixture(scope="module")
def result(whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("result")
    for name, content in whole.items():
        (folder / name).write_bytes(content)
    return MaskResult.load(next(folder.glob(RESULTS)))


def functions(dataset_folder, limit):
    return read_split(dataset_folder, "python", "test", ["code"])[0]["code"].to_pylist()[:limit]


# --- what it finds ---


def similarities(code, text):
    """Plain and slow, over the node types of both: Jaccard, Sorensen-Dice, Levenshtein."""
    import tree_sitter
    import tree_sitter_python

    def walk(node):
        return [node.type, *(kind for child in node.children for kind in walk(child))]

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    one, other = (walk(parser.parse(part.encode()).root_node) for part in (code, text))
    both, either = Counter(one) & Counter(other), Counter(one) | Counter(other)
    row = list(range(len(other) + 1))
    for number, left in enumerate(one, 1):
        diagonal, row[0] = row[0], number
        for place, right in enumerate(other, 1):
            diagonal, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, diagonal + (left != right)),
            )
    jaccard, dice = both.total() / either.total(), 2 * both.total() / (len(one) + len(other))
    return jaccard, dice, 1 - row[-1] / max(len(one), len(other))


def test_a_planted_model_comes_back(model, dataset_folder, monkeypatch):
    """Every row of its ledger, from the public building blocks and slow references."""
    lost = "aent"
    monkeypatch.setattr(MaskedModel, "scores", staticmethod(all_but(lost)))
    result = mask(
        model,
        dataset_folder,
        node_types=["if_statement", "return_statement"],
        draws=2,
        limit=12,
        max_length=LONGEST,
    )
    rows, tokenizer = iter(result.ledger.rows), byte_tokenizer()
    seen, bytes_masked, fixed = Counter(), defaultdict(Counter), defaultdict(list)
    for index, code in enumerate(functions(dataset_folder, 12)):
        if len(tokenizer(code)["input_ids"]) > LONGEST:
            seen["skipped"] += 1
            continue
        for place, name in enumerate(["if_statement", "return_statement"]):
            positions = mask_positions(code, tokenizer, name)
            for copy in range(3 if len(positions) else 0):
                row = next(rows)
                columns = ["function", "node_type", "copy", "seed", "masked"]
                expected = index, place, copy, seed_of(0, index, name, copy), len(positions)
                assert row[columns].tolist() == expected
                if copy == 0:
                    letters = [code[position - 1] for position in positions]
                    wrong = sum(letter in lost for letter in letters)
                    assert row[HITS] == len(letters) - wrong
                    mean = -1 - 2 * wrong / len(letters)
                    assert row["log_probability"] == pytest.approx(mean, abs=6e-4)
                    for filler, sign, filled in (
                        ("", "~", set(lost)),
                        ("letter_", "x", {*code} - {" "}),
                        ("deleted_", "", {*code} - {" "}),
                    ):
                        text = "".join(
                            sign if at in positions and byte in filled else byte
                            for at, byte in enumerate(code, 1)
                        )
                        found = row[[filler + similarity for similarity in SIMILARITIES]].tolist()
                        assert found == pytest.approx(similarities(code, text), abs=1e-12)
                    seen[name] += 1
                    bytes_masked[name].update(letters)
                    fixed[name].append((row["commonest"], letters))
            seen["dropped"] += not len(positions)
    assert next(rows, None) is None
    for name, counted in bytes_masked.items():
        assert all(
            count == masked.count(counted.most_common(1)[0][0]) for count, masked in fixed[name]
        )
    for name in ("if_statement", "return_statement"):
        scores = result.node_types[name]
        assert (scores.functions, scores.masked) == (seen[name], bytes_masked[name].total())
    assert sum(result.skips.values()) == seen["skipped"]
    assert sum(result.dropped.values()) == seen["dropped"] > 0


def test_a_model_that_restores_everything(model, dataset_folder, monkeypatch):
    """All similarities are 1 exactly, and there is no effect."""
    monkeypatch.setattr(MaskedModel, "scores", staticmethod(all_but("")))
    result = mask(model, dataset_folder, **RUN)
    assert all((result.ledger.rows[name] == 1).all() for name in SIMILARITIES)
    assert {
        arm.restored for scores in result.node_types.values() for arm in (scores.t1, scores.t0)
    } == {100.0}


@pytest.mark.slow
def test_a_copy_of_which_one_text_cannot_be_compared_has_no_similarities(
    model, dataset_folder, result, monkeypatch
):
    real = restore.compare
    compared = []

    def fails_once(*types):
        compared.append(types)
        if len(compared) == 3:
            raise CodeSyntaxError("too many nodes")
        return real(*types)

    monkeypatch.setattr(restore, "compare", fails_once)
    rows = mask(model, dataset_folder, **RUN).ledger.rows
    without = np.isnan(rows["jaccard"])
    assert 0 < without.sum() < len(rows)
    for name in FILLED:
        assert (np.isnan(rows[name]) == without).all()
        assert (rows[name] == result.ledger.rows[name])[~without].all()


def test_means_are_over_functions(result):
    """Recomputed row by row from what the ledger says."""
    assert f"copies:{len(result.ledger)}" in result.signature
    assert "|partial:8" in result.signature
    for number, name in enumerate(result.ledger.node_types):
        rows = [row for row in result.ledger.rows if row["node_type"] == number]
        if not rows:
            assert name not in result.node_types
            continue
        t1 = [row["jaccard"] for row in rows if row["copy"] == 0]
        t0 = {}
        for row in rows:
            if row["copy"]:
                t0.setdefault(row["function"], []).append(row["jaccard"])
        scores = result.node_types[name]
        assert scores.t1.jaccard == pytest.approx(sum(t1) / len(t1), abs=1e-12)
        assert scores.t0.jaccard == pytest.approx(
            sum(sum(x) / len(x) for x in t0.values()) / len(t0), abs=1e-12
        )


# --- the same result ---


def test_batches_change_rounding_alone(model, dataset_folder, result):
    ours, theirs = (
        mask(model, dataset_folder, **RUN, batch_tokens=1).ledger.rows,
        result.ledger.rows,
    )
    apart = np.abs(ours["log_probability"] - theirs["log_probability"])
    assert apart.max() < 1.1e-3
    assert (ours["hits_1"] != theirs["hits_1"]).mean() < 0.01


def command(model, dataset_folder, output):
    types = " ".join(f"--node-types {name}" for name in TYPES)
    options = f"--draws 3 --limit 8 --max-length {LONGEST}"
    return f"mask {model} {types} --data {dataset_folder} {options} --output {output}".split()


def test_the_cache_answers_for_the_same_parser_and_control_alone(
    model, dataset_folder, tmp_path, monkeypatch
):
    """Another version of a grammar finds other trees; the second copy of a folder is another place for one result."""
    monkeypatch.setenv("CODESYNTAX_CACHE", str(tmp_path / "cache"))
    masked = []
    real = job.Masking.run
    monkeypatch.setattr(
        job.Masking,
        "run",
        lambda self, part, bar: masked.append(len(part)) or real(self, part, bar),
    )
    few = RUN | {"limit": 2}
    first = mask(model, dataset_folder, **few).ledger.digest()
    assert mask(model, dataset_folder, **few, output=tmp_path / "other").ledger.digest() == first
    assert MaskResult.load(next((tmp_path / "other").glob(RESULTS))).ledger.digest() == first
    runs = len(masked)
    spans = mask(model, dataset_folder, **few, control="spans")
    assert (len(masked), spans.settings.control) == (2 * runs, "spans")
    monkeypatch.setattr(job, "parser_version", lambda language: "another")
    monkeypatch.setattr(cache_dir, "_required", lambda: {"tree-sitter-python": "another"})
    assert mask(model, dataset_folder, **few).run.parser == "another"
    assert len(masked) == 3 * runs > 0


def test_spans_as_controls(model, dataset_folder, result):
    """The same copies of T1, and others of T0 with as many sub-tokens; the signature says so."""
    spans = mask(model, dataset_folder, **RUN, control="spans")
    ours, theirs = (
        {tuple(row)[:3]: tuple(row) for row in one.ledger.rows.tolist()} for one in (spans, result)
    )
    assert ours.keys() == theirs.keys()
    assert all(row[4] == theirs[key][4] for key, row in ours.items())
    assert all(row == theirs[key] for key, row in ours.items() if key[2] == 0)
    assert any(row[6] != theirs[key][6] for key, row in ours.items() if key[2])
    assert "|control:spans|" in spans.signature
    assert "|control:sub-tokens|" in result.signature


def test_an_untrained_twin(model, dataset_folder, result, tmp_path):
    """The same masks, other weights, which the seed draws; the signature and the file say so."""
    twin, again = (
        mask(model, dataset_folder, **RUN, random_weights=True, seed=1) for _ in range(2)
    )
    first = result.ledger.rows["copy"] == 0
    assert (
        twin.ledger.rows["log_probability"][first] != result.ledger.rows["log_probability"][first]
    ).mean() > 0.9
    for column in ("masked", "commonest", "letter_jaccard"):
        assert (twin.ledger.rows[column][first] == result.ledger.rows[column][first]).all()
    assert twin.ledger.digest() == again.ledger.digest()
    assert "|random-weights:True|" in twin.signature
    assert "random" not in result.signature
    assert twin.settings.name != result.settings.name
    data = ("--data", dataset_folder, f"--limit 6 --max-length {LONGEST} --draws 1")
    given = ("mask", model, *data, "--node-types return_statement")
    made = run(*given, "--control spans --control random-weights --output", tmp_path)
    assert "control:spans|random-weights:True" in made.stdout.replace("\n", "")
    refused = run(*given, "--control spans --control sub-tokens", status=2)
    assert "T0 masks spans and sub-tokens: give one of these two" in refused.stderr


def test_another_seed_draws_other_controls(model, dataset_folder, result):
    other = mask(model, dataset_folder, **RUN, seed=1)
    first = result.ledger.rows["copy"] == 0
    measured = [HITS, *SIMILARITIES]
    assert (other.ledger.rows[first][measured] == result.ledger.rows[first][measured]).all()
    assert (other.ledger.rows[~first][measured] != result.ledger.rows[~first][measured]).any()


# --- ledgers and results that were altered ---


@pytest.mark.parametrize(
    "column, place, value, message",
    [
        ("hits_1", 0, lambda row: row["masked"] + 1, "hits that cannot be"),
        ("commonest", 0, lambda row: row["masked"] + 1, "commonest sub-token that cannot be"),
        ("commonest", 0, -1, "commonest sub-token that cannot be"),
        ("jaccard", 0, 1.5, "similarities that cannot be"),
        ("levenshtein", 3, np.nan, "similarities that cannot be"),
        ("log_probability", 0, 0.5, "log_probability that cannot be"),
        ("copy", 1, 2, "out of order"),
        ("copy", 3, 9, "controls for every masked copy"),
        ("masked", 1, lambda row: row["masked"] + 1, "more or fewer sub-tokens"),
        ("function", slice(None), lambda rows: np.cumsum(rows["copy"] == 0), "more functions"),
        ("jaccard", 0, lambda row: 1 - row["jaccard"] / 2, "do not follow from its ledger"),
    ],
)
def test_an_altered_ledger_is_refused(whole, tmp_path, column, place, value, message):
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    (file,), (ledger,) = tmp_path.glob(RESULTS), tmp_path.glob("*.parquet")
    altered = MaskingLedger.load(ledger)
    altered.rows = altered.rows.copy()
    altered.rows[column][place] = value(altered.rows[place]) if callable(value) else value
    altered.save(ledger)
    with pytest.raises(LedgerError, match=message):
        MaskResult.load(file)


def test_a_node_type_without_a_printable_name_is_refused(result, tmp_path):
    ledger = result.ledger
    names = [*ledger.names[:-1], "if\x1b[2J"]
    dataclasses.replace(ledger, names=names).save(tmp_path / "ledger.parquet")
    with pytest.raises(LedgerError, match="another kind"):
        MaskingLedger.load(tmp_path / "ledger.parquet")


def test_a_function_less_is_refused(result, tmp_path):
    """Its pairs no longer add up to those of all functions."""
    functions = np.unique(result.ledger.rows["function"])
    with pytest.raises(LedgerError, match="do not add up"):
        MaskResult.from_ledger(result.ledger.only(functions[1:]))


# --- the command line, and bad input ---


def test_mask_and_score_print_the_same(model, dataset_folder, whole, tmp_path):
    masked = run(*command(model, dataset_folder, tmp_path))
    assert contents(tmp_path) == whole
    scored = run("score", *tmp_path.glob("*.parquet"))
    assert scored.stdout == masked.stdout
    assert "failed comparisons" not in scored.stdout
    for name in TYPES[:3]:
        assert name in masked.stdout
    printed = json.loads(run("score", *tmp_path.glob("*.parquet"), "--json").stdout)
    written = json.loads(next(tmp_path.glob(RESULTS)).read_text())
    assert printed == {name: value for name, value in written.items() if not name.endswith("_path")}


def refused(message, *arguments):
    done = run("mask", *arguments, status=1)
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_bad_input(model, dataset_folder, tiny_model, tmp_path):
    data = ("--data", dataset_folder, "--output", tmp_path)
    refused("did you mean 'if_statement'?", model, *data, "--node-types if_statment")
    refused("has no masked-LM head", tiny_model, *data)
    refused("has a node to mask of await", model, *data, "--node-types await --limit 3")
    refused("more than 5 sub-tokens", model, *data, "--max-length 5 --limit 3")
    refused("no such folder", tmp_path / "none", *data)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    refused("no node type to mask", model, *data, "--node-types ,")
    with pytest.raises(ArgumentError, match="no node type to mask"):
        mask(model, dataset_folder, node_types=[])
    with pytest.raises(ArgumentError, match="rate is 0"):
        mask(model, dataset_folder, rate=0)
    with pytest.raises(UnknownName, match="did you mean 'spans'"):
        mask(model, dataset_folder, control="span")
    with pytest.raises(ArgumentError, match="published has the control sub-tokens"):
        mask(model, dataset_folder, protocol="published", control="spans")
    with pytest.raises(UnknownName, match="published"):
        mask(model, dataset_folder, protocol="publishd")
