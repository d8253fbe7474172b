"""The page of masked syntax, in a real browser."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from support.models.byte_tokenizer import all_but, byte_tokenizer
from support.models.random_models import byte_model
from transformers import AutoModelForMaskedLM

import codesyntax_metric
import probing
from codesyntax_dataset.errors import ArgumentError
from codesyntax_dataset.folder import read_split
from probing.cli import main
from probing.instruments.masking.restore import RestoredPart
from probing.models.masked import MaskedModel
from probing.report.show import restored_lines

pytestmark = pytest.mark.slow

LONGEST = 600
CODE = "def f(a):\n    if a:\n        return a\n    return 1\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return byte_model(tmp_path_factory.mktemp("models") / "masked", LONGEST, layers=1)


@pytest.fixture
def planted(monkeypatch):
    """Every model restores all but the letters of `return`."""
    monkeypatch.setattr(MaskedModel, "scores", staticmethod(all_but("return")))


@pytest.fixture
def opened(model, planted, page):
    page.set_content(probing.show_masked(str(model), CODE, node_type="return_statement").html)
    return page


def arm(page, place):
    return page.locator(".arms:not([hidden]) section").nth(place)


# What the page says -------------------------------------------------------------------------------------------------


def test_marks_by_hand(opened):
    """Two nodes of eight bytes each, without the space in front; `~~~~~~ a` stands for `return a`."""
    t1 = arm(opened, 0)
    assert t1.locator("ins").all_inner_texts() == ["~~~~~~ a", "~~~~~~ 1"]
    assert t1.locator("del").all_inner_texts() == ["return a", "return 1"]
    assert [
        line.partition("~")[0]
        for line in t1.locator(".line").evaluate_all("all => all.map((line) => line.textContent)")
    ] == [
        "def f(a):",
        "    if a:",
        "        ",
        "    ",
    ]
    metric = codesyntax_metric.ast_similarity.load()
    similar = metric.compute(predictions=[CODE.replace("return", "~~~~~~")], references=[CODE])
    said = t1.locator(".numbers").inner_text()
    assert said.startswith("4 of 16 restored.")
    assert re.findall(r"\d\.\d{3}", said)[:3] == [
        f"{similar[name]:.3f}" for name in ("jaccard", "sorensen_dice", "levenshtein")
    ]
    assert "−2.500" in said  # 12 of 16 have −3, the others −1
    (right,) = re.findall(r"^\d+", arm(opened, 1).locator(".numbers").inner_text())
    assert opened.locator("#found").inner_text() == (
        "Of 16 sub-tokens in nodes of the type return_statement, the model restores 4; of as many random ones, "
        f"{right}."
    )


def test_marks_do_not_rest_on_colour(opened):
    looks = "(one) => [getComputedStyle(one).textDecorationLine, getComputedStyle(one).textDecorationStyle].join(' ')"
    assert {
        opened.locator(f".code {kind}").first.evaluate(looks) for kind in (".right", "ins")
    } == {
        "underline solid",
        "underline wavy",
    }


def test_numbers_are_those_of_a_run(model, planted, dataset_folder, page):
    """For every node type: T1 and the first control of the ledger, of the same function and seed."""
    run = probing.mask(str(model), dataset_folder, draws=1, seed=3, limit=12, max_length=LONGEST)
    function = int(run.ledger.rows["function"][0])
    ids = read_split(dataset_folder, "python", "test", ["id"])[0]["id"].to_pylist()
    shown = probing.show_masked(str(model), id=ids[function], data=dataset_folder, seed=3)
    page.set_content(shown.html)
    rows = run.ledger.rows[run.ledger.rows["function"] == function]
    names = [run.ledger.node_types[place] for place in dict.fromkeys(rows["node_type"].tolist())]
    assert page.locator("#type option").evaluate_all("all => all.map((one) => one.value)") == names
    for name, (first, control) in zip(names, rows.reshape(-1, 2)):
        page.locator("#type").select_option(name)
        for place, row in enumerate((first, control)):
            said = arm(page, place).locator(".numbers").inner_text()
            expected = [f"{row[of]:.3f}" for of in ("jaccard", "sorensen_dice", "levenshtein")]
            assert re.findall(r"\d\.\d{3}", said)[:3] == expected
            assert said.startswith(f"{row['hits_1']} of {row['masked']} restored.")
            wrong = arm(page, place).locator(".wrong").count()
            assert wrong <= row["masked"] - row["hits_1"]
            assert (wrong > 0) == (row["masked"] > row["hits_1"])


@pytest.mark.parametrize(
    "parts, lines",
    [
        ([("a\n", "a\n", 0, 0), ("b", "c", 1, 0)], [[("a", "", "")], [("c", "wrong", "b")]]),
        (
            [("\n  ", "\n  ", 1, 1), ("b", "b", 1, 1)],
            [[("⏎", "right", "")], [("  ", "right", ""), ("b", "right", "")]],
        ),
        (
            [("a", "a", 0, 0), ("\n\t", ";", 1, 0), ("b\n", "b\n", 0, 0)],
            [[("a", "", ""), (";", "wrong", "⏎⇥")], [("\t", "", ""), ("b", "", "")]],
        ),
        (
            [("b", "", 1, 0), ("c", " \r\n      ", 1, 0)],
            [[("∅", "wrong", "b"), ("␣␍⏎␣×6", "wrong", "c")]],
        ),
        ([("b", " x y", 1, 0)], [[(" x y", "wrong", "b")]]),
    ],
)
def test_lines_by_hand(parts, lines):
    """The lines of the source stay, and signs stand for what would not be seen."""
    found = restored_lines(
        [RestoredPart(**dict(zip(RestoredPart.model_fields, part))) for part in parts]
    )
    assert [[tuple(piece) for piece in line] for line in found] == lines


def test_any_language_and_pair_in_memory(model, page):
    pair = AutoModelForMaskedLM.from_pretrained(model), byte_tokenizer()
    page.set_content(probing.show_masked(pair, "int f(A a) { return a.b(); }", config="java").html)
    types = page.locator("#type option").evaluate_all("all => all.map((one) => one.value)")
    assert {"identifier", "return_statement", "formal_parameters"} <= set(types)


# Using it -----------------------------------------------------------------------------------------------------------


def test_type_by_menu_button_and_keys(opened):
    types = opened.locator("#type option").evaluate_all("all => all.map((one) => one.value)")
    assert types == ["identifier", "if_statement", "parameters", "return_statement"]
    chosen = "[...document.querySelectorAll('.arms')].filter((one) => !one.hidden).map((one) => one.dataset.type)"
    menu, keys = opened.get_by_label("Node type"), opened.keyboard
    for change, name in (
        (lambda: None, "return_statement"),
        (lambda: menu.select_option("identifier"), "identifier"),
        (opened.locator("#types button", has_text="if_statement").click, "if_statement"),
        (lambda: keys.press("ArrowDown"), "parameters"),
        (lambda: [keys.press("ArrowUp") for _ in range(3)], "identifier"),
    ):
        change()
        pressed = opened.locator("#types button[aria-pressed=true]").all_inner_texts()
        assert opened.evaluate(chosen) == pressed == [menu.input_value()] == [name]
        assert f"of the type {name}," in opened.locator("#found").inner_text()


def test_narrow_page(model, planted, page):
    """Of a line without spaces, all of it masked, and none of it restored in one of the lines."""
    page.set_viewport_size({"width": 400, "height": 800})
    code = f"def f(a):\n    return {'.'.join(['a' * 20] * 8)}\n    return {'return' * 12}\n"
    page.set_content(probing.show_masked(str(model), code, node_type="return_statement").html)
    assert arm(page, 0).locator(".wrong").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# The command and its errors -----------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(
        main, ["show", *(str(argument) for argument in arguments)], catch_exceptions=False
    )


def test_command(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(CODE)
    # not one of the default ones
    done = run(model, "--masked", "--code", "f.py", "--node-type", "block")
    assert (done.exit_code, done.stdout) == (0, "masked.html\n"), done.output
    assert '"opened": "block"' in (tmp_path / "masked.html").read_text()


def test_a_seed_below_0_is_refused(model):
    with pytest.raises(ArgumentError, match="seed is -1"):
        probing.show_masked(str(model), CODE, seed=-1)
