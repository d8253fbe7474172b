"""Minimal pairs: each phenomenon by golden pairs, what certifies them, rivals by a plain reference, and the configs."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest

from codesyntax_dataset import corpus, pairs
from codesyntax_dataset.build import build
from codesyntax_dataset.builder import CodeSyntax
from codesyntax_dataset.check import check_folder
from codesyntax_dataset.errors import DatasetError
from codesyntax_dataset.features import PAIR_FEATURES
from codesyntax_dataset.folder import read_split
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.languages.grammar import parse_framed
from codesyntax_dataset.languages.native import NATIVE
from codesyntax_dataset.pairs import FAR, Pair, candidates, certify, minimal_pairs, programs
from codesyntax_dataset.pairs.code import Code
from codesyntax_dataset.pairs.phenomena import ALL, PHENOMENA
from codesyntax_dataset.pairs.places import argument_order, await_or_yield, distinct_parameters
from codesyntax_dataset.pairs.rivals import Difference, NGrams, Rivals, lexed, windows
from codesyntax_dataset.schema import Skips

GOLDEN = Path(__file__).parents[1] / "golden/pairs"
CHANGE = re.compile(r"⟦(.*)⇒(.*)⟧", re.DOTALL)


def golden(language):
    """The golden pairs of a language: phenomenon, relation, distance, valid text, invalid text."""
    found = []
    for part in re.split(
        r"^== ", (GOLDEN / f"{language}.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )[1:]:
        header, _, text = part.partition("\n")
        phenomenon, relation, distance = header.split()
        good, bad = (CHANGE.sub(lambda match, side=side: match[side], text) for side in (1, 2))
        found.append((phenomenon, relation.replace("-", "") and relation, int(distance), good, bad))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("language", ALL)
def test_golden_pairs_are_found_and_certified(language):
    for phenomenon, relation, distance, good, bad in golden(language):
        pairs = [
            pair
            for pair in minimal_pairs(good, language)
            if (pair.phenomenon, pair.bad) == (phenomenon, bad)
        ]
        assert pairs, f"{phenomenon}: {bad}"
        native = programs.native(language)
        for pair in pairs:
            assert (pair.relation or "-", pair.distance) == (relation or "-", distance), bad
            assert pair.good == good
            assert pair.bad == good[: pair.start] + changed(pair) + good[pair.end :]
            by, _, name = pair.certified.partition("+")
            assert by in ("tree-sitter", "rule")
            assert name == (NATIVE[language].parser if native else "")


def changed(pair):
    return pair.bad[pair.start : pair.end + len(pair.bad) - len(pair.good)]


def test_every_phenomenon_has_a_golden_pair_in_each_of_its_languages():
    expected = {
        (phenomenon.name, language) for phenomenon in PHENOMENA for language in phenomenon.languages
    }
    assert {
        (phenomenon, language) for language in ALL for phenomenon, *_ in golden(language)
    } == expected
    assert set(ALL) == {name for name, language in LANGUAGES.items() if language.editing}


@pytest.mark.slow
@pytest.mark.parametrize("language", ALL)
def test_pairs_differ_in_one_place_and_only_the_valid_text_parses(language):
    found = [pair for code in functions(language) for pair in minimal_pairs(code, language)]
    assert len({pair.phenomenon for pair in found}) >= 4
    native = programs.native(language)
    for pair in found:
        cut = len(pair.bad) - (len(pair.good) - pair.end)
        assert pair.good[: pair.start] == pair.bad[: pair.start]
        assert pair.good[pair.end :] == pair.bad[cut:]
        assert pair.good != pair.bad
        assert pair.distance >= FAR
        assert pair.depth >= 0
        assert not parse_framed(pair.good, language)[0].root_node.has_error
        assert (
            pair.certified.startswith("rule")
            or parse_framed(pair.bad, language)[0].root_node.has_error
        )
        assert not pair.relation or LANGUAGES[language].has_relation(pair.relation)
        if language == "python":
            compile(pair.good, "good", "exec")
            with pytest.raises(SyntaxError):
                compile(pair.bad, "bad", "exec")
        assert native is None or pair.certified.endswith(f"+{NATIVE[language].parser}")


def functions(language, number=3):
    skips = Skips()
    return [
        function.code
        for function in islice(corpus.read("sample", f"{language}_pairs", skips), number)
    ]


VERDICTS = {
    "python": (
        "def f():\n while x: break\n",
        "def f():\n if x: break\n",
        "def f():\n g(1]\n",
        "def f():\n g(1",
    ),
    "java": (
        "void f() { while (x) { break; } }",
        "void f() { if (x) { break; } }",
        "void f() { g(1]; }",
        "void f() {",
    ),
    "javascript": (
        "function f() { while (x) { break; } }",
        "function f() { if (x) { break; } }",
        "f(1];",
        "f(1",
    ),
    "typescript": (
        "function f(x: T) { while (x) { break; } }",
        "function f() { if (x) { break; } }",
        "f(1];",
        "f(1",
    ),
    "go": (
        "func f() { for x { break } }",
        "func f() { if x { break } }",
        "func f() { g(1]; }",
        "func f() {",
    ),
    "php": (
        "function f() { while (x) { break; } }",
        "function f() { if (x) { break; } }",
        "f(1];",
        "f(1",
    ),
    "ruby": (
        "def f\n while x do break end\nend",
        "def f\n if x then break end\nend",
        "f(1]",
        "def f",
    ),
    "rust": (
        "fn f() { while x { break } }",
        "fn f() { if x { break } }",
        "fn f() { g(1]; }",
        "fn f() {",
    ),
}


@pytest.mark.parametrize("language", ALL)
@pytest.mark.slow
def test_native_parsers_know_where_words_may_stand_and_what_is_only_unfinished(language):
    native = programs.native(language)
    if native is None:
        pytest.skip(f"this computer has no parser of {language}")
    before, behind = {"java": ("class A {", "\n}"), "go": ("package p\n", "")}.get(
        language, ("", "")
    )
    verdicts = native([(before, text, behind) for text in VERDICTS[language]])
    assert verdicts == ["valid", "invalid", "invalid", "unfinished"]


@pytest.mark.parametrize("language", ["go", "rust"])
def test_a_compiler_that_does_not_end_in_time_certifies_nothing(language, monkeypatch):
    native = programs.native(language)
    if native is None:
        pytest.skip(f"this computer has no parser of {language}")
    monkeypatch.setattr(programs, "_TIME", 0.001)
    before = "package p\n" if language == "go" else ""
    assert native([(before, text, "") for text in VERDICTS[language][:2]]) == ["unknown", "unknown"]


def test_nothing_is_run_of_a_text(tmp_path):
    """Each program is given code that writes a file if it is run."""
    file = tmp_path / "written"
    codes = {
        "php": f"}} file_put_contents('{file}', 'x'); if (1) {{",
        "ruby": f"BEGIN {{ File.write('{file}', 'x') }}",
        "javascript": f"require('fs').writeFileSync('{file}', 'x')",
        "python": f"open('{file}', 'w')",
    }
    for language, code in codes.items():
        if native := programs.native(language):
            native([("", code, ""), ("", f"}} {code} {{", "")])
    assert not file.exists()


def test_without_a_native_parser_the_column_says_so(monkeypatch):
    monkeypatch.setattr(pairs, "native", lambda language: None)
    _, _, _, good, bad = golden("java")[0]
    said = [
        (pair.certified, pair.refused_by) for pair in minimal_pairs(good, "java") if pair.bad == bad
    ]
    assert said == [("rule", "compiler")]
    assert not any(pair.prefix for pair in minimal_pairs(good, "java"))


@pytest.mark.parametrize(
    "phenomenon, refused_by", [("closer", "parser"), ("loop-or-conditional", "compiler")]
)
def test_a_text_with_a_syntax_tree_is_refused_by_the_compiler(phenomenon, refused_by):
    """`break` in no loop has one for Python's parser; a bracket that another closes has none."""
    code = "def f(q):\n    while q.ready(1, 2, q):\n        a = q.get()\n        if not a:\n            break\n"
    (pair,) = [pair for pair in minimal_pairs(code, "python") if pair.phenomenon == phenomenon][:1]
    assert pair.refused_by == refused_by


def test_a_pair_that_parsers_disagree_on_is_left_out_and_says_why():
    good = "def f(x):\n    return x\n"
    pair = Pair(good, good.replace("x)", "y)"), "closer", "", 6, 7, 9, 1)
    (reason,) = certify([pair], "python")
    assert reason == "the changed text is valid"
    claimed = Pair(good, good.replace("x)", "y)"), "closer", "", 6, 7, 9, 1, certified="rule")
    (reason,) = certify([claimed], "python")
    assert reason == "parsers disagree: ast reads the changed text, rule refuses it"


@pytest.mark.parametrize("verdict", ["invalid", "unfinished"])
def test_what_is_only_unfinished_is_certified_without_a_prefix(monkeypatch, verdict):
    (pair, _), _ = candidates("def f(x):\n    return g(x, 1, 2)\n", "python")

    def check(texts):
        return ["valid" if text == pair.good else verdict for _, text, _ in texts]

    monkeypatch.setattr(pairs, "native", lambda language: check)
    (found,) = certify([pair], "python")
    assert (found.certified, found.prefix) == ("tree-sitter+ast", verdict == "invalid")
    assert found.refused_by == "parser"


def plain_log_probability(training, context, token):
    """Witten and Bell (1991), interpolated, by counting in lists."""
    padded = [[""] * 4 + text for text in training]

    def grams(n):
        return [tuple(text[i - n + 1 : i + 1]) for text in padded for i in range(4, len(text))]

    probability = 1 / (len(set(grams(1))) + 1)
    for n in range(1, 6):
        before = tuple(context[len(context) - n + 1 :])
        followers = [gram[-1] for gram in grams(n) if gram[:-1] == before]
        if followers:
            kinds = len(set(followers))
            probability = (followers.count(token) + kinds * probability) / (len(followers) + kinds)
    return math.log(probability)


def test_the_n_gram_model_is_that_of_a_plain_reference():
    draws = random.Random(7)
    training = [[draws.choice("abcde") for _ in range(draws.randrange(1, 30))] for _ in range(8)]
    text = [draws.choice("abcdef") for _ in range(40)]
    model = NGrams(np.concatenate([windows(tokens) for tokens in training]))
    padded = [""] * 4 + text
    expected = [
        plain_log_probability(training, padded[i : i + 4], padded[i + 4]) for i in range(len(text))
    ]
    assert model.log_probabilities(windows(text)) == pytest.approx(expected, abs=1e-9)


def test_the_n_gram_model_of_the_other_half_prefers_the_text_of_higher_probability():
    learned, padding = "x = f(1)\nx = f(1)\n", [""] * 4
    texts = {
        "1": ("y = f(1)\n", "y = f[1)\n"),
        "2": ("y = f[1)\n", "y = f(1)\n"),
        "3": ("q\n", "r\n"),
    }
    found = Rivals()
    for origin, code in (("other", learned), ("third", "z\nz\n"), ("mine", "z\n")):
        found.train(origin, code)
    found.score((id_, "mine", "closer", *pair) for id_, pair in texts.items())

    def plain(text):
        tokens = padding + lexed(text)
        return sum(
            plain_log_probability([lexed(learned)], tokens[i : i + 4], tokens[i + 4])
            for i in range(len(tokens) - 4)
        )

    assert [np.sign(round(plain(good) - plain(bad), 9)) for good, bad in texts.values()] == [
        1,
        -1,
        0,
    ]
    assert found.preferred == {
        "1": "prefers the valid text",
        "2": "prefers the invalid text",
        "3": "is undecided",
    }


@pytest.mark.parametrize(
    "files, origins", [("one/a two/b", {"one", "two"}), ("one/a one/b", {"a.go", "b.go"})]
)
def test_rivals_learn_of_repositories_or_of_files_where_there_is_one(
    tmp_path, monkeypatch, files, origins
):
    learned, train = set(), Rivals.train

    def heard(self, origin, code):
        learned.add(origin)
        train(self, origin, code)

    monkeypatch.setattr(Rivals, "train", heard)
    for name in ("validation/three/c", *(f"test/{file}" for file in files.split())):
        file = tmp_path / "source" / f"{name}.go"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("package p\n\n" + golden("go")[0][3], encoding="utf-8")
    build(str(tmp_path / "source"), ["go_pairs"], tmp_path / "data")
    assert learned == {*origins, "c.go"}


def test_a_difference_has_the_windows_that_see_the_change_and_no_others():
    good, bad = "a b c d e f g h i j".split(), "a b c d e X g h i j".split()
    difference = Difference(" ".join(good), " ".join(bad))
    assert (difference.put_in, difference.taken) == (("X",), ("f",))
    assert (difference.good == windows(good)[5:10]).all()
    assert (difference.bad == windows(bad)[5:10]).all()
    assert lexed("if a:\n\n    b_1 += 'x'\n") == [
        "if",
        "a",
        ":",
        "\n    ",
        "b_1",
        "+",
        "=",
        "'",
        "x",
        "'",
        "\n",
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "data"
    return folder, build("sample", ["python_pairs", "go_pairs"], folder)


@pytest.mark.slow
def test_a_config_of_pairs_is_built_checked_and_loaded(built):
    folder, report = built
    assert (
        check_folder(folder).configs["python_pairs"].functions
        == report.configs["python_pairs"].functions
    )
    rows = datasets.load_dataset(
        str(folder), "python_pairs", split="test", cache_dir=folder.parent / "cache"
    )
    assert rows.features == PAIR_FEATURES
    assert len(set(rows["id"])) == len(rows) >= 300
    codes = {function.code for function in corpus.read("sample", "python", Skips())}
    assert set(rows["good"]) <= codes
    card = (folder / "README.md").read_text(encoding="utf-8")
    for phenomenon, count in Counter(rows["phenomenon"]).items():
        assert re.search(rf"^\| `{phenomenon}` .*\| {count} \|", card, flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "go"])
def test_each_candidate_is_kept_or_counted_with_a_reason(built, language):
    config = built[1].configs[f"{language}_pairs"]
    found = [
        candidates(function.code, language)
        for function in corpus.read("sample", f"{language}_pairs", Skips())
    ]
    of_functions = sum(len(reasons) for _, reasons in found)
    of_pairs = sum(config.skips.counts.values()) - of_functions
    assert sum(config.functions.values()) + of_pairs == sum(len(pairs) for pairs, _ in found)


@pytest.mark.slow
def test_both_rivals_are_at_chance_on_each_phenomenon(built):
    """By a model that is trained here, on the same half of the repositories, and by weights drawn for tokens."""
    rows = pq.read_table(built[0] / "python_pairs/test.parquet").to_pylist()
    preferred = built_again(rows)
    draws = random.Random(3)
    weights = Counter()
    for phenomenon in {row["phenomenon"] for row in rows}:
        of_it = [row for row in rows if row["phenomenon"] == phenomenon]
        bag = []
        for row in of_it:
            tokens = [Counter(lexed(row[side])) for side in ("good", "bad")]
            for token in tokens[0] | tokens[1]:
                weights.setdefault(token, draws.random())
            sums = [math.fsum(weights[token] for token in of.elements()) for of in tokens]
            bag.append(0.5 if abs(sums[0] - sums[1]) < 1e-9 else sums[0] > sums[1])
        assert sum(bag) == len(of_it) / 2, phenomenon
        assert sum(preferred[row["id"]] for row in of_it) == len(of_it) / 2, phenomenon


def built_again(rows):
    """Id -> 1, 0 or 0.5: what a 5-gram model says that is trained as the build does, on all candidates of the split."""
    found = Rivals()
    for function in corpus.read("sample", "python_pairs", Skips()):
        if function.partition == "test" and candidates(function.code, "python")[0]:
            found.train(function.repo, function.code)
    found.score(
        (row["id"], row["repo"], row["phenomenon"], row["good"], row["bad"]) for row in rows
    )
    says = {"prefers the valid text": 1, "prefers the invalid text": 0, "is undecided": 0.5}
    return {id_: says[text] for id_, text in found.preferred.items()}


@pytest.mark.slow
def test_the_same_rows_come_from_several_processes_and_from_the_builder(built, tmp_path):
    report = build("sample", ["go_pairs"], tmp_path / "again", num_proc=2)
    assert report.configs["go_pairs"].digest == built[1].configs["go_pairs"].digest
    for split in ("test", "validation"):
        first, second = (
            folder / f"go_pairs/{split}.parquet" for folder in (built[0], tmp_path / "again")
        )
        assert first.read_bytes() == second.read_bytes()
    builder = CodeSyntax(cache_dir=str(tmp_path / "cache"), config_name="go_pairs", source="sample")
    builder.download_and_prepare()
    assert (
        builder.as_dataset(split="test").to_list()
        == pq.read_table(first.parent.parent / "go_pairs/test.parquet").to_pylist()
    )


def test_the_same_function_in_several_files_is_scored_in_each(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number in range(6):
        (source / f"file{number}.go").write_text(
            "package p\n\n" + golden("go")[0][3], encoding="utf-8"
        )
    report = build(str(source), ["go_pairs"], tmp_path / "data", validation_fraction=0)
    left_out = report.configs["go_pairs"].skips.counts
    candidates_of_all = 6 * len(candidates(golden("go")[0][3], "go")[0])
    assert (
        sum(report.configs["go_pairs"].functions.values()) + sum(left_out.values())
        == candidates_of_all
        > 6
    )


@pytest.mark.parametrize(
    "language, code",
    [
        (
            "python",
            "async def f(rows):\n    async for row in rows.all(1):\n        if row: break\n",
        ),
        ("python", "def f(rows):\n    for one, other in rows.all(1):\n        if one: break\n"),
        (
            "python",
            "async def f(rows):\n    async with rows.all(1, 2) as row:\n        print(row)\n",
        ),
        (
            "python",
            "def f(rows):\n    with rows.all(1, 2):\n        with rows as row: print(row)\n",
        ),
        (
            "go",
            "func f(rows []int) {\n\tfor _, row := range rows {\n\t\tif row > 1 {\n\t\t\tbreak\n\t\t}\n\t}\n}\n",
        ),
        ("go", "func f() {\n\tfor {\n\t\tif g(1, 2, 3) {\n\t\t\tbreak\n\t\t}\n\t}\n}\n"),
        ("go", "func f() {\n\tif row := g(); row > 1 {\n\t\tg()\n\t} else {\n\t\th()\n\t}\n}\n"),
        (
            "rust",
            "fn f() {\n    'rows: while g.h(1) {\n        g.h(2);\n        break;\n    }\n}\n",
        ),
        ("go", "func f() {\n\tfor i := 0; i < 9; i++ {\n\t\tbreak\n\t}\n}\n"),
        # blocks license `break`, too
        ("ruby", "def f(rows)\n  rows.all { while g(1, 2) do break end }\nend\n"),
        ("ruby", "def f(rows)\n  rows.all do while g(1, 2) do break end end\nend\n"),
        ("ruby", "def f(rows)\n  -> { while g(1, 2) do break end }\nend\n"),
        ("javascript", "function* f(rows) {\n  yield* rows.all(1);\n}\n"),
        # the other word would be as good
        ("python", "def f(x):\n    try: g\n    except E: h(x)\n    finally: h(1)\n"),
        (
            "ruby",
            "def f(x)\n  begin\n    g(1, x)\n  rescue E, F\n    h(x)\n  ensure\n    h(1)\n  end\nend\n",
        ),
        # nothing stands behind, or what may stand there
        ("python", "def f(x):\n    if x: g\n    else: h(1, 2)\n"),
        (
            "python",
            "def f(x):\n    try:\n        if x: g\n        else: h(1, 2)\n    except E as e: h(x)\n",
        ),
        (
            "python",
            "def f(x):\n    try: g\n    except:\n        if x: g\n        else: h(1, 2)\n    finally: h\n",
        ),
    ],
)
def test_a_word_that_its_neighbours_give_away_or_allow_is_not_exchanged(language, code):
    found = {pair.phenomenon for pair in candidates(code, language)[0]}
    assert found.isdisjoint(
        "loop-or-conditional with-or-conditional await-or-yield else-or-finally "
        "handler-or-branch block-header".split()
    )


def test_functions_have_up_to_5000_characters_and_up_to_three_pairs_of_an_exchange():
    code = "def f(x):\n" + "    g(x, 1, 2)\n" * 9
    found, reasons = candidates(code + "#" * (5000 - len(code)), "python")
    assert Counter(pair.bad[pair.start] for pair in found) == dict.fromkeys("]} g", 3)
    too_long = candidates(code + "#" * (5001 - len(code)), "python")
    assert (reasons, too_long) == ([], ([], ["the function is longer than 5,000 characters"]))


def test_what_reads_functions_says_that_these_are_pairs(built):
    with pytest.raises(DatasetError, match="python_pairs are minimal pairs"):
        read_split(built[0], "python_pairs", "test", ["id", "code"])


def test_each_of_two_names_takes_the_place_of_the_other():
    sites = distinct_parameters(Code("def f(a, b, c):\n    pass", "python"))
    assert [(site.start, site.end, site.text) for site in sites] == [(6, 7, "c"), (12, 13, "a")]


@pytest.mark.parametrize(
    "call, moved",
    [
        ("g(key=1)", []),
        ("g(x, key=1)", ["key=1, x"]),
        ("g(self, key=1)", []),
        ("g(cls, key=1)", []),
    ],
)
def test_only_what_stands_before_a_named_argument_moves_behind_it(call, moved):
    sites = argument_order(Code(f"def f():\n    {call}", "python"))
    assert [site.text for site in sites] == moved


@pytest.mark.parametrize("given, count", [("from a", 1), ("*a, 1", 0), ("a", 0)])
def test_only_a_generator_that_delegates_could_wait(given, count):
    sites = await_or_yield(Code(f"def f(a):\n    yield {given}", "python"))
    assert len([*sites]) == count
