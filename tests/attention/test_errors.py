"""The error analysis: first choices, the classes of wrong ones, and that they sum to the errors of the ledger."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from support.commands import run
from tqdm import tqdm
from transformers import AutoModel

from codesyntax_dataset import tokenize
from codesyntax_dataset.errors import LedgerError
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, DIRECTIONS, HEAD_TO_DEPENDENT, RULES
from probing import ProbeResult, RankLedger, probe
from probing.instruments.attention.attended import choices_of_heads
from probing.instruments.attention.errors import (
    ERROR_CLASSES,
    MOST_DIFFERING,
    TOKEN_KINDS,
    Tokens,
    _differing_hits,
    _token_kind,
    analyse,
    errors_path,
    load,
    save,
)
from probing.instruments.attention.probe import Probing
from probing.instruments.attention.ranking import FirstChoices
from probing.instruments.attention.runner import Runner
from probing.report.relations import error_parts
from probing.runs.data import read_functions
from probing.runs.saved import ledger_path
from probing.runs.session import Session

SOME = 8  # functions


# First choices ------------------------------------------------------------------------------------------------------


def word_level(maps, alignment):
    """(tokens, tokens) from one head's map: attended sub-tokens summed, attending ones averaged, nothing for itself."""
    tokens = len(alignment.first)
    pooled = np.full((tokens, tokens), -1.0)
    owned = [
        range(alignment.first[t], alignment.last[t] + 1) if alignment.first[t] >= 0 else ()
        for t in range(tokens)
    ]
    for reader in range(tokens):
        for attended in range(tokens):
            if owned[reader] and owned[attended]:
                weight = sum(
                    maps[row, column] for row in owned[reader] for column in owned[attended]
                )
                pooled[reader, attended] = 0 if reader == attended else weight / len(owned[reader])
    return pooled


def choice(weights, reader):
    """The token of the largest weight, the first of equals; -1 for a reader without sub-tokens."""
    return -1 if weights[reader].max() < 0 else int(weights[reader].argmax())


def eager_maps(model, function):
    """The attention maps of a function: (layers, heads, sub-tokens, sub-tokens)."""
    with torch.no_grad():
        maps = model(torch.tensor(function.ids[None]), output_attentions=True).attentions
    return np.stack([layer[0].double().numpy() for layer in maps])


@pytest.fixture(scope="module")
def short(dataset_folder):
    """Rows of functions of few tokens."""
    rows = datasets.load_dataset(str(dataset_folder), "python", split="test")
    return [row for row in rows if len(row["tokens"]) < 45][:4]


@pytest.fixture(scope="module", params=DIRECTIONS)
def task(request, tiny_model, short):
    functions = read_functions(datasets.Dataset.from_list(short), "python", "test")
    return Probing(Session(str(tiny_model)), functions, request.param)


@pytest.fixture(scope="module")
def eager(tiny_model):
    """The model whose attention maps transformers returns."""
    return AutoModel.from_pretrained(tiny_model, attn_implementation="eager")


@pytest.mark.slow
def test_first_choices_are_those_of_eager_maps(task, eager):
    """Pooled and searched in plain Python."""
    direction = task.direction
    layers, heads = task.encoder.layers, task.encoder.heads
    rng = np.random.default_rng(0)
    shape = (len(RULES), len(task.encoded.relations))
    picked = np.stack([rng.integers(0, layers, shape), rng.integers(0, heads, shape)], axis=-1)
    # 200 sub-tokens a batch: batches of one and of several functions
    found = Runner(task.encoder, direction, 200).run(
        task.functions, tqdm(disable=True), partial(FirstChoices, picked=picked)
    )
    expected, almost = [], 0
    for function in task.functions:
        maps = eager_maps(eager, function)
        pooled = {}
        for relation, head, first, last in zip(
            *(getattr(function.edges, name) for name in ("relation", "head", "first", "last"))
        ):
            of_edge = []
            for number, rule in enumerate(RULES):
                place = tuple(picked[number, relation])
                if place not in pooled:
                    pooled[place] = word_level(maps[place], function.alignment)
                weights = pooled[place]
                if direction == HEAD_TO_DEPENDENT:
                    reader, chosen = head, choice(weights, head)
                else:
                    reader = last if rule == "last" else first
                    chosen = choice(weights, reader)
                    if rule == "any" and head in [
                        choice(weights, t) for t in range(first, last + 1)
                    ]:
                        chosen = head
                of_edge.append((chosen, weights[reader]))
            expected.append(of_edge)
    assert found.shape == (len(RULES), len(expected))
    for edge, of_edge in enumerate(expected):
        for number, (chosen, weights) in enumerate(of_edge):
            ours = found[number, edge]
            if ours != chosen:  # two weights that rounding cannot tell apart
                assert weights[ours] == pytest.approx(weights[chosen], abs=1e-6)
                almost += 1
    assert almost <= 2
    assert len(np.unique(found)) > 10


@pytest.mark.slow
def test_attended_kinds_are_those_of_eager_maps(task, eager, short):
    """Of every head: each reading token counts once, by the kind of the token with its largest weight."""
    keywords = LANGUAGES["python"].keywords
    kinds = {
        place: np.array(
            [
                TOKEN_KINDS.index(_token_kind(row["code"][slice(*span)], keywords))
                for span in zip(row["token_start"], row["token_end"])
            ]
        )
        for place, row in enumerate(short)
    }
    picked = np.zeros((len(RULES), len(task.encoded.relations), 2), int)
    _, attended = choices_of_heads(task, picked, kinds, len(TOKEN_KINDS))
    expected = np.zeros_like(attended)
    for function in task.functions:
        maps = eager_maps(eager, function)
        for place in np.ndindex(maps.shape[:2]):
            weights = word_level(maps[place], function.alignment)
            for reader in function.readers(task.direction):
                if weights[reader].max() > 0:
                    expected[place][kinds[function.index][weights[reader].argmax()]] += 1
    assert attended.shape == (task.encoder.layers, task.encoder.heads, len(TOKEN_KINDS))
    assert np.abs(attended - expected).sum() <= 4  # two weights that rounding cannot tell apart
    assert (attended.sum(axis=2) == expected.sum(axis=2)).all()
    assert attended.sum() > 100


@pytest.mark.slow
def test_a_reader_without_sub_tokens_chooses_nothing(tiny_model):
    """A line break, which BERT's tokenizer drops, as the head of an edge."""
    code = "a = b\nc"
    row = {"id": 0, "code": code, "token_start": [0, 2, 4, 5, 6], "token_end": [1, 3, 5, 6, 7]}
    row["relations"] = [{"relation": "If:if->test", "head": 3, "first": 4, "last": 4}]
    data = datasets.Dataset.from_list([row])
    task = Probing(Session(tiny_model), read_functions(data, "python", "test"))
    picked = np.zeros((len(RULES), 1, 2), int)
    runner = Runner(task.encoder, HEAD_TO_DEPENDENT, None)
    found = runner.run(task.functions, tqdm(disable=True), partial(FirstChoices, picked=picked))
    assert found.tolist() == [[-1]] * 3


# Classes ------------------------------------------------------------------------------------------------------------

PYTHON = '''\
def f(items, limit):
    """About f."""
    for item in items:
        if item.size > limit and True:
            total = (item.size +
  limit)
            yield total
    # done
    return items, 3.5
'''
JAVA = """\
int f(List items) {
    int count = 0;
    while (count < items.size()) {
        if (items.get(count) == null) { return -1; }
        count += 'x';
    }
    return count;
}
"""


def classify(code, language, head, dependent, chosen):
    """The class of a choice; a token is named by its text and which of its kind it is, from 0."""
    tokens = tokenize(code, language)

    def find(text, number=0):
        return [index for index, token in enumerate(tokens) if token.text == text][number]

    first, last = (find(*place) for place in dependent)
    _, start, end = zip(*tokens)
    known = Tokens(code, start, end, LANGUAGES[language])
    chosen = chosen if isinstance(chosen, int) else find(*chosen)
    return known.classify(chosen, find(*head), find(*head), first, last)


@pytest.mark.parametrize(
    "chosen, expected",
    [
        (-1, "no prediction"),
        (("if",), "no prediction"),  # the reading token itself
        (("(", 1), "bracket"),
        ((":", 1), "separator"),
        ((".", 1), "separator"),
        (("=",), "operator"),
        ((">",), "operator"),
        (("yield",), "keyword"),
        (("True",), "keyword"),
        (("3.5",), "literal"),
        (('"""About f."""',), "literal"),
        (("size",), "inside the dependent"),
        (("item", 0), "outside its block"),  # the loop's own line is not in its body
        (("total", 0), "inside its block"),
        (("items", 1), "outside its block"),
        (("items", 0), "outside its block"),
        (("# done",), "other"),
    ],
)
def test_python_classes(chosen, expected):
    """For `if` -> `item.size > limit and True`, whose block is the body of the loop."""
    assert classify(PYTHON, "python", ("if",), (("item", 1), ("True",)), chosen) == expected


TWICE = "def f(a):\n    if a:\n        if a.b:\n            return 1\n        else:\n            return 2\n    else:\n        return 3\n"


SAME, INSIDE, OUTSIDE = "same text as the head", "inside its block", "outside its block"
CONTINUED = "def f(a):\n    b = a + \\\nc\n    d\n"
HEADER = "abstract int f(Object a, Object b);"
SCRIPT = "function f(b) { return b == `a ${b}` || /[a-z]+/g }"
PHP = "function f($x) { return A\\b($x) . <<<E\n y\n E; }"
RUBY = "def f(x)\n  return x + @y.z?(:s)\nend"


@pytest.mark.parametrize(
    "code, language, head, dependent, chosen, expected",
    [
        # another `item`; of a head that is punctuation, the class is that
        (PYTHON, "python", ("item", 1), ("size",), ("item", 2), SAME),
        (TWICE, "python", ("if",), ("else", 1), ("if", 1), SAME),
        (JAVA, "java", ("items", 2), ("get",), ("items", 0), SAME),
        (PYTHON, "python", ("True",), ("size",), ("yield",), "keyword"),
        (PYTHON, "python", ("(",), ("items",), ("(", 1), "bracket"),
        # in the body of `if`: lines inside brackets have no indentation of their own
        (PYTHON, "python", ("if",), ("total", 0), ("limit", 2), INSIDE),
        (PYTHON, "python", ("if",), ("total", 0), ("total", 1), INSIDE),
        (PYTHON, "python", ("if",), ("total", 0), ("limit", 1), OUTSIDE),
        # in the line of `for`, so in the body of f: comments have no indentation either
        (PYTHON, "python", ("for",), ("items", 1), ("total", 1), INSIDE),
        (PYTHON, "python", ("for",), ("items", 1), ("items", 2), INSIDE),
        (PYTHON, "python", ("for",), ("items", 1), ("f",), OUTSIDE),
        (CONTINUED, "python", ("=",), ("a", 1), ("d",), INSIDE),
        (CONTINUED, "python", ("=",), ("a", 1), ("a", 0), OUTSIDE),
        # in the line of `while`, so in the body of f: nested brackets are inside
        (JAVA, "java", ("while",), ("count", 1), ("get",), INSIDE),
        (JAVA, "java", ("while",), ("count", 1), ("items", 0), OUTSIDE),
        # a method without any brackets is one block
        (HEADER, "java", ("int",), ("a",), ("b",), INSIDE),
        # template strings, regular expressions, and names and literals with signs
        (SCRIPT, "javascript", ("return",), ("b", 1), ("`a ${b}`",), "literal"),
        (SCRIPT, "javascript", ("return",), ("b", 1), ("/[a-z]+/g",), "literal"),
        (PHP, "php", ("return",), ("$x",), ("A\\b",), INSIDE),
        (PHP, "php", ("return",), ("$x",), ("<<<E\n y\n E",), "literal"),
        (RUBY, "ruby", ("return",), ("x",), ("@y",), INSIDE),
        (RUBY, "ruby", ("return",), ("x",), ("z?",), INSIDE),
        (RUBY, "ruby", ("return",), ("x",), (":s",), "literal"),
    ],
)
def test_classes_in_every_language(code, language, head, dependent, chosen, expected):
    assert classify(code, language, head, (dependent, dependent), chosen) == expected


@pytest.mark.parametrize("line_break", ["\n", "    ", ""])
def test_line_breaks_and_indentation(line_break):
    tokens = Tokens(
        f"a = b{line_break}c",
        [0, 2, 4, 5, 5 + len(line_break)],
        [1, 3, 5, 5 + len(line_break), 6 + len(line_break)],
        LANGUAGES["python"],
    )
    assert tokens.classify(3, 0, 0, 2, 2) == "line break"


@pytest.mark.parametrize(
    "chosen, expected",
    [
        (("{", 2), "bracket"),
        ((";", 0), "separator"),
        (("+=",), "operator"),
        (("null",), "keyword"),
        (("int", 1), "keyword"),
        (("'x'",), "literal"),
        (("0",), "literal"),
        (("get",), "inside the dependent"),
        (("count", 3), "inside its block"),
        (("size",), "outside its block"),
        (("f",), "outside its block"),
    ],
)
def test_java_classes(chosen, expected):
    """For `if` -> `items.get(count) == null`, whose block is the body of the loop."""
    assert classify(JAVA, "java", ("if",), (("items", 2), ("null",)), chosen) == expected


# A whole result -----------------------------------------------------------------------------------------------------


def analysed(config, direction, tiny_model, dataset_folder, folder):
    """A probed result, and its analysis."""
    probed = probe(
        tiny_model, dataset_folder, config, limit=SOME, direction=direction, output=folder
    )
    path = probed.paths(folder)[0]
    return path, probed, analyse(path, model=tiny_model, data=dataset_folder)


@pytest.fixture(scope="module")
def result(tiny_model, dataset_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return analysed("python", HEAD_TO_DEPENDENT, tiny_model, dataset_folder, folder)


@pytest.fixture(scope="module", params=[HEAD_TO_DEPENDENT, DEPENDENT_TO_HEAD])
def either(request, result, tiny_model, dataset_folder, tmp_path_factory):
    """Of a direction each."""
    if request.param == HEAD_TO_DEPENDENT:
        return result
    folder = tmp_path_factory.mktemp("others")
    return analysed("java", request.param, tiny_model, dataset_folder, folder)


@pytest.mark.slow
def test_classes_sum_to_the_errors_of_the_ledger(either):
    """Edges and hits are counted here from the ledger's ranks, at the heads that the result names."""
    _, probed, analysis = either
    ledger = probed.ledger
    assert list(analysis.rules) == list(RULES)
    errors = 0
    for number, rule in enumerate(RULES):
        assert analysis.differing[rule] == 0
        assert set(analysis.rules[rule]) == set(probed.relations)
        for name, entry in analysis.rules[rule].items():
            best = probed.relations[name][rule]["1"]
            of_relation = ledger.relation == ledger.relations.index(name)
            ranks = ledger.ranks[number, of_relation, best["layer"], best["head"]]
            assert (entry["layer"], entry["head"]) == (best["layer"], best["head"])
            assert entry["edges"] == len(ranks)
            assert entry["hits"] == sum(int(rank) == 0 for rank in ranks)
            assert entry["errors"] == entry["edges"] - entry["hits"]
            assert sum(found["errors"] for found in entry["classes"].values()) == entry["errors"]
            assert [kind for kind in ERROR_CLASSES if kind in entry["classes"]] == list(
                entry["classes"]
            )
            if entry["errors"]:
                assert sum(found["share"] for found in entry["classes"].values()) == pytest.approx(
                    100
                )
            errors += entry["errors"]
        assert sum(analysis.classes(rule).values()) == sum(
            entry["errors"] for entry in analysis.rules[rule].values()
        )
    assert errors > 500


def test_saved_beside_the_result_and_loaded(result):
    path, _, analysis = result
    written = save(analysis, path)
    assert (
        written == errors_path(path) == path.with_name(path.name.replace(".json", ".errors.json"))
    )
    assert load(written) == analysis
    assert not [file for file in path.parent.iterdir() if file.name.startswith(".")]
    with pytest.raises(LedgerError, match="not an error analysis"):
        load(path)


@pytest.mark.slow
def test_a_ledger_of_another_model_is_refused(result, tiny_model, dataset_folder, tmp_path):
    """The heads of the ledger are swapped: its hits are not what the model does."""
    path, *_ = result
    ledger = RankLedger.load(ledger_path(path))
    swapped = ProbeResult.from_ledger(
        dataclasses.replace(ledger, ranks=ledger.ranks[..., [1, 2, 0]])
    ).save(tmp_path)
    with pytest.raises(LedgerError, match="this run and the ledger disagree on"):
        analyse(swapped, model=tiny_model, data=dataset_folder)


@pytest.mark.slow
def test_other_data_is_refused(result, tiny_model, dataset_folder):
    path, probed, _ = result
    rows = datasets.load_dataset(
        str(dataset_folder), probed.settings.config, split="test"
    ).to_list()
    rows[0]["relations"].pop()
    with pytest.raises(LedgerError, match="labels"):
        analyse(path, model=tiny_model, data=datasets.Dataset.from_list(rows))


@pytest.mark.slow
def test_command(result, tiny_model, dataset_folder):
    path, probed, analysis = result
    arguments = ["errors", str(path), "--model", str(tiny_model), "--data", str(dataset_folder)]
    printed = run(*arguments, "--rule last")
    for words in (
        probed.signature,
        "children:parent->child",
        "all relations",
        "last token of the dependent",
    ):
        assert words in printed.stdout
    assert load(errors_path(path)) == analysis
    for _, edges, errors, head, *_ in error_parts(analysis, "last")[0].rows:
        assert (head is None) == (errors == edges)
    told = run(*arguments, "--json")
    assert json.loads(told.stdout)["rules"] == analysis.model_dump()["rules"]
    missing = run("errors", path.with_name("none.json"), status=1)
    assert missing.stderr.startswith("Error: cannot read the result")


@pytest.mark.parametrize(
    "kind, texts",
    [
        (
            "literal",
            [
                "`a ${b}`",
                "/[a-z]+\\//gi",
                "<<~TEXT\n  a\nTEXT\n",
                "<<<'END'\na\nEND",
                ":name",
                'r#"a"#',
                "%w[a b]",
                "'c'",
            ],
        ),
        (
            "name",
            [
                "$total",
                "@total",
                "@@all",
                "empty?",
                "save!",
                "\\App\\Store",
                "App\\Store",
                "größe",
                "_",
            ],
        ),
        (
            "operator",
            "=> <=> ?-> ??= =~ << % / <- := :: ..= &&=".split(),
        ),
        ("keyword", ["while"]),
        ("other", ["# a 'comment'", "#'comment'", "some text", "§"]),
    ],
)
def test_kinds_of_tokens_in_every_language(kind, texts):
    assert {text: _token_kind(text, ("while",)) for text in texts} == dict.fromkeys(texts, kind)


class LedgerOfHits(list):
    """As many edges as it has items; the best heads find all of them."""

    def of_heads(self, layers, heads):
        return np.zeros((len(RULES), len(self)), np.uint8)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_so_many_edges_may_differ_by_rounding(precision):
    edges = round(3 / MOST_DIFFERING[precision])
    settings, picked = SimpleNamespace(precision=precision), np.zeros((len(RULES), edges, 2), int)
    hit = np.ones((len(RULES), edges), bool)
    hit[0, :3] = False
    ledger = LedgerOfHits(range(edges))
    assert _differing_hits(ledger, settings, picked, hit) == {"first": 3, "any": 0, "last": 0}
    hit[0, 3] = False
    with pytest.raises(LedgerError, match=f"disagree on 4 of {edges} edges"):
        _differing_hits(ledger, settings, picked, hit)
