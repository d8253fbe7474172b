"""Which sub-tokens are masked: the reference of the published procedure, and cases worked out by hand."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import Counter

import numpy as np
import pytest
from support.models.byte_tokenizer import byte_tokenizer
from support.references.plain_masks import mask_positions
from transformers import AutoTokenizer

from codesyntax_dataset.errors import ParseError, UnknownName
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.grammar import node_types
from probing.instruments.masking.masking import (
    CURRENT,
    MASKING_PROTOCOLS,
    PUBLISHED,
    SPANS,
    Maskable,
    Masker,
    masked_copies,
    seed_of,
)
from probing.instruments.masking.result import NO_PLACE
from probing.models.subtokens import encode

# --- the reference ---


@pytest.fixture(scope="module")
def tokenizer(shared):
    return AutoTokenizer.from_pretrained(shared / "data/masked_model")


@pytest.fixture(scope="module")
def cases(shared):
    """A function and a case of it."""
    reference = json.loads(
        gzip.decompress((shared / "data/syntaxeval/reference.json.gz").read_bytes())
    )
    return [(function, case) for function in reference["functions"] for case in function["cases"]]


@pytest.mark.slow
def test_every_mask_of_the_reference(tokenizer, cases):
    """Where the parser of 2023 found other nodes, those of ours are compared, and by its nodes its mask."""
    compared = 0
    for function, case in cases:
        code, kind = function["code"], case["node_type"]
        (ours,) = Masker(tokenizer, "python", [kind], protocol=PUBLISHED).read([code])
        nodes = {kind: np.array(case["node_spans"]).reshape(-1, 2)}
        theirs = Maskable(code, next(encode(tokenizer, [code])), tokenizer, nodes, PUBLISHED)
        recorded = case.get("t1", {"positions": [], "count": 0})
        masks = [(theirs, recorded)]
        if "node_spans_current" in case:
            assert ours.nodes[kind].tolist() == case["node_spans_current"]
            masks.append((ours, case["t1_current"]))
        # its indices are of nodes that our parser does not find
        elif function["id"] != "own-broken" or "sampled_nodes" not in case:
            assert ours.nodes[kind].tolist() == case["node_spans"]
            masks.append((ours, recorded))
        for maskable, expected in masks:
            positions, controls = maskable.mask(kind, case["rate"], case.get("seed", 0))
            assert (positions.tolist(), controls) == (expected["positions"], expected["count"])
        compared += len(masks)
    assert compared == 290 + 289


@pytest.mark.slow
def test_every_control_of_the_reference(tokenizer, cases):
    drawn = 0
    for function, case in cases:
        (ours,) = Masker(tokenizer, "python", [case["node_type"]], protocol=PUBLISHED).read(
            [function["code"]]
        )
        for copy in case.get("t0", []):
            assert ours.control(len(copy["drawn"]), copy["seed"]).tolist() == copy["positions"]
            drawn += 1
    assert drawn == 741


@pytest.mark.slow
def test_true_characters_of_the_reference(tokenizer, cases):
    """`current` by a plain reading of its rules, over the spans that the reference gives."""
    compared = 0
    for function, case in cases:
        spans = case.get("true_char_spans", case["node_spans"])
        if "node_spans_current" in case or case["rate"] < 1:
            continue
        code, kind = function["code"], case["node_type"]
        (ours,) = Masker(tokenizer, "python", [kind]).read([code])
        assert ours.nodes[kind].tolist() == spans
        ids, offsets, special = next(encode(tokenizer, [code]))
        expected = [
            place
            for place, (a, b) in enumerate(offsets.tolist())
            if not special[place]
            and ids[place] not in tokenizer.all_special_ids
            and any(
                (s < a <= e or a == s == e)
                if a == b
                else a <= s <= b
                if s == e
                else a < e and s < b
                for s, e in spans
            )
        ]
        assert ours.mask(kind).positions.tolist() == expected
        compared += 1
    assert compared == 246


# --- worked out by hand ---

BYTES = byte_tokenizer()
RUNS = byte_tokenizer((('"', '"'), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ")))


def shown(code, node_type, language="python", tokenizer=BYTES, **options):
    """The code, ASCII alone, with what is masked in «quotes»."""
    positions = set(mask_positions(code, tokenizer, node_type, language, **options).tolist())
    ids = next(encode(tokenizer, [code]))[0]
    text, inside = "", False
    for place in range(1, len(ids)):
        if inside != (inside := place in positions and place < len(ids) - 1):
            text += "«" if inside else "»"
        if place < len(ids) - 1:
            text += tokenizer.decode([ids[place]])
    assert text.replace("«", "").replace("»", "") == code
    return text


@pytest.mark.parametrize("protocol", MASKING_PROTOCOLS)
@pytest.mark.parametrize(
    "node_type, masked",
    [
        # as published, a space in front of a node goes with it; in the protocol current it is none of its characters
        ("identifier", "def« f»(«a»,« b»):\n\treturn« a»+«b»\n"),
        ("identifier", "«x».«y» =« f»(«z»=1).«w»\n"),  # attributes and keywords, too
        ("parameters", "def f«(a, b)»:\n    pass\n"),
        ("parameters", "def f«()»:\n    pass\n"),
        ("string", "x =« 'a' 'b'»\n"),
        # the string inside of an f-string is not one of the outermost
        (
            "string",
            "x =« f'{y!r} {\"z\"}'»\n",
        ),
        ("string", "def f():\n   « '''a\n    b'''»\n"),
        ("if_statement", "«if a:\r\n\tb\r\nelse:\r\n\tc»\r\nd\r\n"),
        ("if_statement", "«if a:\n\tif b:\n\t\tc»\n«if d: e»\n"),
        ("comparison_operator", "x =« a<b<c»,« d is not e»\n"),
        ("boolean_operator", "x =« a and (b or c)»\n"),
        ("return_statement", "def f():\n\t«return»\n"),
        ("return_statement", "def f():\n\tpass\n"),
        ("for_in_clause", "[a« for a in b for c in d» if e]\n"),
        ("if_clause", "[a for a in b« if a»]\n"),
        ("while_statement", ""),
        ("=", "x« =» y==z\n"),
        ("module", "\n«x\n»"),  # the root, which begins at the first statement
    ],
)
def test_by_hand(node_type, masked, protocol):
    # two nodes each
    between = {
        "« 'a' 'b'»": " «'a'» «'b'»",
        "« for a in b for c in d»": " «for a in b» «for c in d»",
    }
    expected = masked
    for published, current in (*between.items(), ("« ", " «")) if protocol != PUBLISHED else ():
        expected = expected.replace(published, current)
    assert shown(masked.replace("«", "").replace("»", ""), node_type, protocol=protocol) == expected


@pytest.mark.parametrize(
    "node_type, masked",
    [
        ("if_statement", "void f() {\n\t«if (a) b(); else if (c) d();»\n}\n"),
        ("enhanced_for_statement", "void f() { «for (A a : b) c();» for (;;) d(); }"),
        ("binary_expression", "boolean f() { return «a && b < c»; }"),
        ("string_literal", 'String f() { return «"a"» + «"b"»; }'),
        ("formal_parameters", "int f«(int a, int b)» { return a; }"),
        ("ternary_expression", "int f() { return «a ? b : c»; }"),
    ],
)
def test_java_by_hand(node_type, masked):
    assert shown(masked.replace("«", "").replace("»", ""), node_type, "java") == masked


@pytest.mark.parametrize(
    "node_type, current, published",
    [
        # of five spaces, BPE leaves one alone
        ("return_statement", "def f():\n    «return»\n", "def f():\n«    return»\n"),
        ("return_statement", "def f():\n     «return»\n", "def f():\n    « return»\n"),
        ("string", 'x = «"a""b"»\n', 'x =« "a""b"»\n'),
    ],
)
def test_runs_of_spaces_as_one_sub_token(node_type, current, published):
    code = current.replace("«", "").replace("»", "")
    assert shown(code, node_type, tokenizer=RUNS) == current
    assert shown(code, node_type, tokenizer=RUNS, protocol=PUBLISHED) == published


def test_a_sub_token_over_two_nodes_counts_twice_as_published():
    code = 'x = "a""b"\n'  # sub-tokens: <s> x ␣ = ␣ " a "" b " \n </s>
    for protocol, controls in ((CURRENT, 5), (PUBLISHED, 7)):
        (function,) = Masker(RUNS, "python", ["string"], protocol=protocol).read([code])
        assert function.mask("string").controls == controls
        assert (
            function.mask("string").positions.tolist() == [4, 5, 6, 7, 8, 9][protocol == CURRENT :]
        )


def test_bytes_as_characters():
    """Of `é = x; y`, in which `é` is two bytes, the later names slide right by one, as published."""
    code = "é = x; y\n"  # positions: <s> 0, é 1 and 2, ␣ 3, = 4, ␣ 5, x 6, ; 7, ␣ 8, y 9, \n 10, </s> 11
    assert mask_positions(code, BYTES, "identifier").tolist() == [1, 2, 6, 9]
    # é: its two characters, é and the space, and the special tokens at 0; x: the semicolon; y: cut at the line's end to
    # nothing, which the `y` before it and the line break behind it touch
    assert mask_positions(code, BYTES, "identifier", protocol=PUBLISHED).tolist() == [
        0,
        1,
        2,
        3,
        7,
        9,
        10,
        11,
    ]


def test_special_tokens_are_masked_as_published_only():
    code = "a = '</s>' # <mask>\n"  # <s> a ␣ = ␣ ' </s> ' ␣ # ␣ <mask> \n </s>
    positions = {
        protocol: {
            kind: mask_positions(code, BYTES, kind, protocol=protocol).tolist()
            for kind in ("identifier", "string")
        }
        for protocol in MASKING_PROTOCOLS
    }
    assert positions[CURRENT] == {"identifier": [1], "string": [5, 7]}
    # the mask token that the source spells is a mask in every copy
    assert positions[PUBLISHED] == {"identifier": [0, 1, 11, 13], "string": [4, 5, 6, 7, 11]}
    (function,) = Masker(BYTES, "python", ["identifier"]).read([code])
    assert (
        function.control(10, 0).tolist()
        == function.eligible.tolist()
        == [1, 2, 3, 4, 5, 7, 8, 9, 10, 12]
    )
    (function,) = Masker(BYTES, "python", ["identifier"], protocol=PUBLISHED).read([code])
    assert {0, 6, 11, 13} <= set(function.control(14, 0).tolist())


def drawn_spans(code, node_type, seeds):
    """How often each control comes; positions count from 1, one for each character."""
    (function,) = Masker(BYTES, "python", [node_type]).read([code])
    positions = function.mask(node_type).positions
    return Counter(
        tuple(function.control_spans(node_type, positions, seed).tolist()) for seed in range(seeds)
    )


def test_spans_are_as_long_as_the_nodes_and_outside_of_them():
    """Between words, which no span cuts."""
    # <s> a b + 1 2 = ( 3 \n </s>
    spans = {(4, 5), (6, 7), (7, 8), (8, 9)}
    assert drawn_spans("ab+12=(3\n", "identifier", 50).keys() == spans
    # the longest has the only place of its length, of which the other would often take a part
    assert drawn_spans("(a)+bb\n", "identifier", 50).keys() == {(1, 3, 4), (3, 4, 7)}


@pytest.mark.slow
def test_spans_do_not_touch_and_are_drawn_one_after_the_other():
    """Two identifiers of one letter beside eight signs."""
    drawn = drawn_spans("[(a),{b}]\n", "identifier", 4000)
    signs = [1, 2, 4, 5, 6, 8, 9, 10]
    assert drawn.keys() == {(x, y) for x, y in itertools.combinations(signs, 2) if y - x > 1}
    left = {x: [y for y in signs if abs(x - y) > 1] for x in signs}
    for (x, y), count in drawn.items():
        assert count == pytest.approx(4000 / 8 * (1 / len(left[x]) + 1 / len(left[y])), abs=70)


def test_a_span_without_a_place_is_drawn_as_halves():
    """Of `long` and `abc`, beside which are ` + ` and `(1)` with the line break."""
    drawn = drawn_spans("long + abc(1)\n", "identifier", 50)
    assert {len(positions) for positions in drawn} == {7}
    assert drawn.keys() == {(5, 6, 7, 11, 12, 13, 14)}


def test_nodes_without_as_many_sub_tokens_beside_them_are_left_out():
    (function,) = Masker(BYTES, "python", ["module"]).read(["a = 1"])
    assert masked_copies(function, 0, ["module"], 1, 0, control=SPANS) == ([], {NO_PLACE: 1})


def test_nodes_without_characters():
    """Error repair inserts an identifier behind the full stop, which it touches; the space behind ends one further on."""
    code = "x. = 3\n"
    (function,) = Masker(BYTES, "python", ["identifier"]).read([code])
    assert function.nodes["identifier"].tolist() == [[0, 1], [2, 2]]
    assert function.mask("identifier").positions.tolist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", [BYTES, RUNS])
def test_untrimmed_offsets_mask_the_same(tokenizer, dataset_folder):
    import datasets

    untrimmed = byte_tokenizer(
        () if tokenizer is BYTES else (('"', '"'), ("Ġ", "Ġ"), ("ĠĠ", "ĠĠ")), trim_offsets=False
    )
    compared = 0
    for language in ("python", "java"):
        codes = datasets.load_dataset(
            "parquet", data_files=str(dataset_folder / language / "test*.parquet")
        )["train"]
        for protocol in MASKING_PROTOCOLS:
            maskers = [Masker(one, language, protocol=protocol) for one in (tokenizer, untrimmed)]
            for ours, theirs in zip(*(masker.read(codes["code"][:10]) for masker in maskers)):
                for kind in maskers[0].node_types:
                    positions = ours.mask(kind).positions.tolist()
                    assert theirs.mask(kind).positions.tolist() == positions
                    compared += len(positions) > 0
    assert compared > 150


def test_rates():
    code = "a = b + c\n"
    # one of three, rounded down
    drawn = {shown(code, "identifier", rate=0.5, seed=seed) for seed in range(20)}
    assert drawn == {"«a» = b + c\n", "a = «b» + c\n", "a = b + «c»\n"}
    assert shown("a\n", "identifier", rate=0.5) == "a\n"


def test_seeds_are_those_of_before():
    """SHA-256 of `0 7 string 3`, its first 8 bytes without the last bit."""
    assert seed_of(0, 7, "string", 3) == 0x04C686DAD27906A6 >> 1
    seeds = {
        seed_of(0, 7, "string", 3),
        seed_of(1, 7, "string", 3),
        seed_of(0, 8, "string", 3),
        seed_of(0, 7, "string", 4),
        seed_of(0, 7, "identifier", 3),
    }
    assert len(seeds) == 5


def test_default_node_types_are_in_the_grammars():
    for name in ("python", "java"):
        assert len(LANGUAGES[name].node_types) == 11
        assert list(LANGUAGES[name].node_types) == sorted(
            {*LANGUAGES[name].node_types} & {*node_types(name)}
        )
    assert {"ERROR", "=", "if", "module"} <= {*node_types("python")}


# --- refusals ---


@pytest.mark.parametrize(
    "options, error, said",
    [
        (
            {"node_type": "if_statment"},
            UnknownName,
            "unknown python node type 'if_statment': did you mean 'if_statement'",
        ),
        ({"language": "jav"}, UnknownName, "did you mean 'java'"),
        ({"protocol": "publish"}, UnknownName, "did you mean 'published'"),
        ({"code": "x = '\ud800'"}, ParseError, "line 1, column 5: a lone surrogate"),
    ],
)
def test_refusals(options, error, said):
    given = {"code": "if a: b\n", "tokenizer": BYTES, "node_type": "if_statement", **options}
    with pytest.raises(error, match=said) as raised:
        mask_positions(**given)
    assert "\n" not in str(raised.value)


def test_code_that_does_not_parse_is_masked():
    assert shown("def f(:\n\treturn x\n", "return_statement") == "def f(:\n\t«return x»\n"
    assert shown("x = ) 3\n", "ERROR") == "x = «)» 3\n"
