"""The page with the edges of a function, without a model, in a real browser."""

from __future__ import annotations

import pytest
from support.commands import run

import probing
from codesyntax_dataset import annotate
from codesyntax_dataset.languages import LANGUAGES
from codesyntax_dataset.schema import Skips
from codesyntax_dataset.sources import read

pytestmark = pytest.mark.slow

CODE = """\
def f(self, xs):
    # why
    if self.a and xs:
        first = last = xs[0]
        return g(first, [last])
    n: int = sum(x for x in xs)
"""
BOTH = ["python", "python_exact"]

DRAWN = """() => [...document.querySelectorAll("#lines g")].map(({dataset, children}) => [+dataset.edge, children.length / 3])"""


@pytest.fixture(scope="module")
def labels():
    return probing.show_labels(CODE, configs=BOTH)


@pytest.fixture
def opened(labels, page):
    page.set_content(labels.html)
    return page


def choose(page, *relations):
    page.locator("#choice summary").click()
    page.locator("#choice").get_by_role("button", name="none").click()
    for relation in relations:
        page.locator("#choice").get_by_label(relation).check()
    page.locator("#choice summary").click()


def edges(page):
    return page.locator("#edges button").all_text_contents()


def lit(page, pane):
    """The head, then the tokens of the dependent, of the edge that is shown alone."""
    code = page.locator(f"#code-{pane}")
    return code.locator(".lit-head").all_text_contents() + code.locator(".lit").all_text_contents()


def test_edges_of_a_relation_in_two_configs(opened):
    """By hand: what the published labels and the exact ones say of it."""
    assert opened.locator("#panes h2").all_text_contents() == BOTH
    choose(opened, "Assign:target->value")
    assert edges(opened) == ["~ first ⇒ xs[0]", "+ last ⇒ xs[0]", "+ n ⇒ sum(x for x in xs)"]
    assert (
        opened.locator("#found").text_content() == "3 edges: = 0 kept, ~ 1 moved, + 2 new, − 0 gone"
    )
    assert [lines for _, lines in opened.evaluate(DRAWN)] == [2, 1, 1]
    choose(opened, "Call:func->args")
    assert edges(opened) == ["~ g ⇒ first, [last]", "+ sum ⇒ (x for x in xs)"]
    choose(opened, "If:if->test", "BoolOp:value->value")
    assert edges(opened) == ["= if ⇒ self.a and xs", "= self ⇒ xs"]


def test_a_relation_that_differs_is_opened(page):
    """Two configs are compared for what differs, here the last relation of all."""
    code = 'def f(a):\n    b = a\n    return f"{b + a}"\n'
    page.set_content(
        probing.show_labels(code, configs=("python_exact", "python_interpolated")).html
    )
    assert edges(page) == ["+ b ⇒ a"]


def test_an_edge_is_chosen_in_the_list_and_in_the_code(opened):
    choose(opened, "Assign:target->value")
    listed, code = opened.locator("#edges button"), opened.locator("#code-1 .token")
    listed.first.hover()
    shorter = ["first", "xs", "[", "0"]
    assert [lit(opened, pane) for pane in (0, 1)] == [shorter, [*shorter, "]"]]
    told = opened.locator("#edge").text_content()
    assert told == "Assign:target->value ~ movedpythonfirst ⇒ xs[0python_exactfirst ⇒ xs[0]"
    listed.nth(1).click()
    opened.mouse.move(0, 0)
    assert [lit(opened, pane) for pane in (0, 1)] == [[], ["last", "xs", "[", "0", "]"]]
    assert "no such edge" in opened.locator("#edge").text_content()
    for choose_last in (
        code.get_by_text("n", exact=True).click,
        lambda: opened.locator("#lines .touch").last.dispatch_event("pointerover"),
    ):
        opened.keyboard.press("Escape")
        assert lit(opened, 1) == []
        choose_last()
        assert lit(opened, 1) == "n sum ( x for x in xs )".split()


def test_kinds_can_be_left_out(opened):
    choose(opened, "Assign:target->value")
    opened.get_by_label("moved").uncheck()
    assert edges(opened) == ["+ last ⇒ xs[0]", "+ n ⇒ sum(x for x in xs)"]
    choose(opened)
    assert opened.locator("#found").text_content().startswith("0 edges")
    assert opened.locator("#lines g").count() == 0


def test_narrow_page(labels, page):
    page.set_viewport_size({"width": 400, "height": 800})
    page.set_content(labels.html)
    tops = [page.locator(f"#code-{pane}").bounding_box()["y"] for pane in (0, 1)]
    assert tops[1] > tops[0] + 100  # one below the other
    page.locator("#choice summary").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    "language", [name for name, one in LANGUAGES.items() if not one.of_treebanks]
)
def test_every_language(page, language):
    """Every edge of a function is drawn; in two configs, if the language has two."""
    known = LANGUAGES[language].configs
    first, *others = known
    chosen = [first, *(name for name in others if name.endswith("_exact"))]
    codes = (function.code for function in read("sample", language, Skips()))
    code = min(codes, key=lambda one: abs(len(one) - 600))
    page.set_content(probing.show_labels(code, configs=chosen).html)
    page.locator("#choice summary").click()
    page.locator("#choice").get_by_role("button", name="all").click()
    drawn = sum(lines for _, lines in page.evaluate(DRAWN))
    labelled = [annotate(code, language, known[name].name).edges for name in chosen]
    assert drawn == sum(map(len, labelled)) > 20


def test_by_the_command(dataset_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = "--data", dataset_folder, "--id 3"
    done = run("show --labels", *where, "--config python --config python_exact")
    assert done.stdout == "labels.html\n"
    assert "python_exact" in (tmp_path / "labels.html").read_text(encoding="utf-8")


def test_without_a_config_the_name_of_the_file_says_the_language(tmp_path):
    file = tmp_path / "f.java"
    file.write_text("int f(A a) { return a.b(); }")
    assert probing.show_labels(file) == probing.show_labels(file, configs=["java"])
    assert probing.show_labels(CODE) == probing.show_labels(CODE, configs=["python"])
