"""The attention page, in a real browser."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from transformers import AutoModel, AutoTokenizer, GPT2Config, GPT2Model

import probing
from codesyntax_dataset import CodeSyntaxError, annotate
from codesyntax_metric.topk_uas import DEPENDENT_TO_HEAD, HEAD_TO_DEPENDENT, RULES, rank_attention
from probing.cli import main
from probing.models.location import EMBEDDED

pytestmark = pytest.mark.slow

CODE = '''\
def f(self, xs):
    """Two
    lines."""
    if xs.empty and self.a:
        return g(xs, [1, 2])
    for x in xs:
        self.total += x.size * 2
    return h(xs)
'''
MARKUP = '</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def tokenizer(tiny_model):
    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture(scope="module")
def shown(tiny_model):
    return probing.show(str(tiny_model), CODE)


@pytest.fixture
def opened(shown, page):
    page.set_content(shown.html)
    return page


def data_of(shown):
    return case_in(shown.html)


def case_in(html):
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', html, re.DOTALL).group(1))


def word_attention(model, tokenizer, code, tokens):
    """(layers, heads, tokens, tokens) from the model's own eager maps, pooled token by token."""
    encoded = tokenizer(code, return_offsets_mapping=True, return_special_tokens_mask=True)
    with torch.inference_mode():
        maps = model(torch.tensor([encoded["input_ids"]]), output_attentions=True).attentions
    maps = torch.cat(maps).double().numpy()
    subs = [
        [
            place
            for place, (start, end) in enumerate(encoded["offset_mapping"])
            if not encoded["special_tokens_mask"][place] and start < token.end and end > token.start
        ]
        for token in tokens
    ]
    words = np.zeros((*maps.shape[:2], len(tokens), len(tokens)))
    for i, reading in enumerate(subs):
        for j, read in enumerate(subs):
            if reading and read:
                words[:, :, i, j] = maps[:, :, reading][:, :, :, read].sum(axis=-1).mean(axis=-1)
    return words


@pytest.fixture(scope="module", params=[HEAD_TO_DEPENDENT, DEPENDENT_TO_HEAD])
def compared(request, tiny_model, tokenizer):
    """A page, and the same from the eager maps of an encoder or a decoder: its direction, edges and word attention."""
    if request.param == HEAD_TO_DEPENDENT:
        model = AutoModel.from_pretrained(tiny_model, attn_implementation="eager")
    else:
        torch.manual_seed(0)
        sizes = {"vocab_size": len(tokenizer), "n_embd": 24, "n_layer": 2, "n_head": 3}
        model = GPT2Model(GPT2Config(**sizes, initializer_range=0.3, attn_implementation="eager"))
    model.eval()
    tokens, edges = annotate(CODE, "python")
    words = word_attention(model, tokenizer, CODE, tokens)
    return probing.show((model, tokenizer), CODE), request.param, edges, words


# What the page says -------------------------------------------------------------------------------------------------

EVERYTHING = """() => {
  const select = (id, value) => {
    const menu = document.getElementById(id);
    menu.value = value;
    menu.dispatchEvent(new Event("change", {bubbles: true}));
  };
  const values = (id) => [...document.getElementById(id).options].map((option) => option.value);
  const found = [];
  for (const relation of values("relation")) {
    select("relation", relation);
    for (const rule of values("rule")) {
      select("rule", rule);
      const best = document.querySelector("#best button")?.value ?? null;
      for (const layer of values("layer")) {
        select("layer", layer);
        for (const head of values("head")) {
          select("head", head);
          const lines = (kind) => [...document.querySelectorAll("#lines ." + kind)].map((path) => [+path.dataset.from, +path.dataset.to]);
          found.push({
            relation: document.getElementById("relation").selectedOptions[0].text.replace(/ .*/, ""),
            rule, best, layer: +layer, head: +head, said: document.getElementById("found").textContent,
            right: lines("right-line"), wrong: lines("wrong-line"), gold: lines("gold-line"),
          });
        }
      }
    }
  }
  return found;
}"""


def test_predictions_are_those_of_the_metric(compared, page):
    """For every relation, rule and attention head: an edge is found where `rank_attention` says rank 0."""
    shown, direction, edges, words = compared
    page.set_content(shown.html)
    layers, heads, tokens, _ = words.shape
    pairs = [("pair", i, j, j) for i in range(tokens) for j in range(tokens)]
    first = rank_attention(words, pairs)[0].reshape(tokens, tokens, layers, heads) == 0
    seen = page.evaluate(EVERYTHING)
    assert len(seen) == len({edge.relation for edge in edges}) * len(RULES) * layers * heads
    for one in seen:
        mine = [edge for edge in edges if edge.relation == one["relation"]]
        # (edges, layers, heads)
        hits = rank_attention(words, mine, direction)[RULES.index(one["rule"])] == 0
        hit = hits[:, one["layer"], one["head"]]
        counts = hits.sum(axis=0)
        best = (
            "-".join(map(str, np.unravel_index(counts.argmax(), counts.shape)))
            if counts.any()
            else None
        )
        assert one["best"] == best  # no head is the best of those that find nothing
        assert one["said"].startswith(
            f"Head {one['layer']}-{one['head']} finds {hit.sum()} of {len(mine)} edge"
        ), (
            one,
            hit,
        )
        for reader, guess in one["right"] + one["wrong"]:
            assert first[reader, guess, one["layer"], one["head"]]
        missed = []  # between the head token and the token of the dependent that the rule names, `any` its first
        for edge, found in zip(mine, hit):
            line = [edge.head, edge.last if one["rule"] == "last" else edge.first]
            missed += [] if found else [line if direction == HEAD_TO_DEPENDENT else line[::-1]]
        assert sorted(one["gold"]) == sorted(missed)
        heads = {line[direction != HEAD_TO_DEPENDENT] for line in one["right"]}
        assert heads == {edge.head for edge, found in zip(mine, hit) if found}
    marks = [sum(len(one[kind]) for one in seen) for kind in ("right", "wrong")]
    assert min(marks) > 5
    assert sum(marks) > 100


def test_weights_are_those_of_the_eager_maps(compared):
    """The largest of each row, in falling order, to half a percent: what a square root in 8 bits leaves."""
    shown, _, _, words = compared
    data = data_of(shown)
    shape = data["layers"], data["heads"], len(data["readers"]), data["kept"]
    tokens = np.frombuffer(base64.b64decode(data["tokens"]), "<u2").reshape(shape).astype(int)
    weights = (np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(shape) / 255) ** 2
    rows = words[:, :, data["readers"]]
    rows[:, :, range(len(data["readers"])), data["readers"]] = 0
    kept = np.take_along_axis(rows, tokens, axis=-1)
    assert data["kept"] == 20
    assert np.abs(kept - weights).max() < 0.005
    assert (np.diff(kept) < 1e-6).all()
    np.put_along_axis(rows, tokens, 0, axis=-1)
    assert (rows.max(axis=-1) <= kept[..., -1] + 1e-6).all()


def test_code_stands_as_it_is_written(tiny_model, page):
    """Line breaks, indentation, tabs, comments, tokens of several lines; line breaks that are tokens have a sign."""
    code = 'def f(x):\r\n\t"""Two\n\n    lines."""  # why\n\n\treturn x.ä\n'
    page.set_content(probing.show(str(tiny_model), code).html)
    for pane in ("#reading", "#read"):
        lines = page.locator(f"{pane} .line")
        assert [
            line.rstrip("⏎")
            for line in lines.evaluate_all("all => all.map((line) => line.textContent)")
        ] == ["def f(x):", '\t"""Two', "", '    lines."""  # why', "", "\treturn x.ä"]
        assert (
            lines.evaluate_all("all => all.map((line) => line.dataset.line).join('')") == "123456"
        )


PAGES = {
    "attention": lambda model, file: probing.show(str(model), file),
    "masked": lambda _, file: probing.show_masked("tiny-code-mlm", file),
    "labels": lambda _, file: probing.show_labels(file),
}


@pytest.mark.parametrize("shown", PAGES.values(), ids=PAGES)
def test_markup_in_code_and_names_stays_text(tiny_model, page, tmp_path, shown):
    """On every page of a function."""
    file = tmp_path / "<img src=x onerror=alert(1)>.py"
    file.write_text(f"def f(x):\n    # {MARKUP}\n    return x.g({MARKUP!r})\n")
    page.set_content(shown(tiny_model, file).html)
    lines = page.locator(".line").all_text_contents()
    assert f"    # {MARKUP}" in [line.rstrip("⏎") for line in lines]
    assert "<img src=x onerror=alert(1)>.py" in page.locator("h1").text_content()
    assert page.locator("img").count() == 0
    assert page.title() != "1"


def test_notebook_shows_it_in_a_frame_of_its_own(tiny_model, page):
    code = f"def f(x):\n    return x.g({MARKUP!r})\n"
    page.set_content(
        f"<p>before</p>{probing.show(str(tiny_model), code)._repr_html_()}<p>after</p>"
    )
    inside = page.frame_locator("iframe")
    assert inside.locator("#found").text_content().startswith("Head ")
    assert page.locator("img").count() == inside.locator("img").count() == 0
    assert page.locator("p").all_text_contents() == ["before", "after"]
    # its style sheet sets margin 0
    assert page.evaluate("getComputedStyle(document.body).margin") == "8px"


# Using it -----------------------------------------------------------------------------------------------------------


def token(page, text, nth=0):
    return page.locator("#reading .token").get_by_text(text, exact=True).nth(nth)


def test_click_on_a_token(opened):
    opened.get_by_label("Relation").select_option("If:if->test (1)")
    opened.get_by_label("Dependent matched by").select_option("any")
    assert opened.locator("#lines path").count() >= 1
    token(opened, "if").click()
    assert token(opened, "if").get_attribute("aria-selected") == "true"
    assert opened.locator("#token-title").text_content() == "if, line 4"
    assert re.search(
        "(found|missed)xs.empty and self.aline 4", opened.locator("#token").text_content()
    )
    weighted = opened.locator("#read .token").evaluate_all(
        "all => all.filter((one) => one.style.backgroundColor).length"
    )
    assert weighted >= 10
    assert opened.locator("#lines path").count() >= 10
    opened.locator("#read .token").get_by_text("size", exact=True).click()
    assert opened.locator("#token-title").text_content() == "size, line 7"


def test_heat_view(opened):
    opened.get_by_label("Relation").select_option("If:if->test (1)")
    opened.get_by_label("Heat").check()
    assert not opened.locator("#attended").is_visible()
    assert opened.locator("#lines path").count() == 0
    assert token(opened, "if").get_attribute("aria-selected") == "true"  # the first that reads
    heat = "all => all.map((one) => one.style.backgroundColor)"
    before = opened.locator("#reading .token").evaluate_all(heat)
    token(opened, "size").click()
    assert opened.locator("#reading .token").evaluate_all(heat) != before
    assert opened.locator("#reading .gold").count() == 0  # `size` has no edge of this relation


STOP = "(({id, name, role, value}) => id || name || role || value)(document.activeElement)"


def test_keyboard(opened):
    """All of it by keys alone, with the focus to be seen; tokens in hand-counted order."""
    stops = []
    opened.keyboard.press("Tab")
    while opened.evaluate("document.activeElement !== document.body"):
        stops.append(opened.evaluate(STOP))
        assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", (
            stops
        )
        opened.keyboard.press("Tab")
    assert stops[:6] == "relation rule layer head view option".split()
    assert stops[6:] == opened.locator("#best button").evaluate_all(
        "all => all.map((button) => button.value)"
    )

    focused = "document.activeElement.textContent + ' ' + document.activeElement.getAttribute('aria-selected')"
    token(opened, "xs").focus()
    steps = [
        ("Enter", "xs true"),
        ("ArrowRight", ") true"),
        ("ArrowLeft", "xs true"),
        ("Home", "def true"),
        ("ArrowLeft", "def true"),
        ("End", "⏎ true"),
    ]
    for key, expected in steps:
        opened.keyboard.press(key)
        assert opened.evaluate(focused) == expected, key
    token(opened, "if").focus()
    opened.keyboard.press("ArrowDown")
    assert opened.evaluate("document.activeElement.closest('.line').dataset.line") == "5"
    opened.keyboard.press("ArrowUp")
    assert opened.evaluate("document.activeElement.closest('.line').dataset.line") == "4"
    opened.keyboard.press("Escape")
    assert opened.locator("[aria-selected=true]").count() == 0


def test_heads_by_menu_table_and_keys(opened):
    opened.locator("#relation").select_option(
        opened.locator("#relation option", has_text="children").inner_text()
    )
    opened.locator("#layer").select_option("1")
    opened.locator("#head").select_option("2")
    assert opened.locator("#found").text_content().startswith("Head 1-2 finds ")
    buttons = opened.locator("#best button")
    second = buttons.nth(1).get_attribute("value")
    buttons.nth(0).focus()
    opened.keyboard.press("ArrowDown")
    assert opened.locator("#best button[aria-pressed=true]").get_attribute("value") == second
    assert opened.locator("#found").text_content().startswith(f"Head {second} finds ")
    assert (
        opened.locator("#layer").input_value() + "-" + opened.locator("#head").input_value()
        == second
    )


def test_opens_with_the_head_that_is_asked_for(tiny_model, page):
    """Another relation then shows the best head for it again."""
    code = "def f(x, y):\n    if x.a:\n        return x.b(y)\n"
    page.set_content(probing.show(str(tiny_model), code, head="1-0").html)
    shown = [page.locator(f"#{menu}").input_value() for menu in ("layer", "head", "rule")]
    assert shown == ["1", "0", "first"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_page(shown, page, scheme):
    """It opens with the view that fits; the other one scrolls inside itself, not the page."""
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.set_content(shown.html)
    assert page.get_by_label("Heat").is_checked() and not page.locator("#attended").is_visible()
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    page.get_by_label("Lines").check()
    assert page.locator("#attended").is_visible() and page.locator("#lines path").count() >= 1
    assert page.evaluate(fits)
    assert page.evaluate("document.querySelector('.scroll').scrollWidth > innerWidth")


def test_page_of_300_tokens_opens_fast(page, tmp_path):
    """In far less than the bound on a machine that does nothing else."""
    code = "def f(a, b):\n" + "    if a.b: c = g(a, 1)\n" * 26
    assert len(annotate(code, "python").tokens) >= 300
    page.goto(probing.show(EMBEDDED, code).save(tmp_path / "page.html").as_uri())
    assert page.evaluate("performance.now()") < 10_000
    assert page.locator("#lines path").count() > 20
    token(page, "if", 25).click()
    assert page.locator("#token-title").text_content() == "if, line 27"


# The command and its errors -----------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(
        main, ["show", *(str(argument) for argument in arguments)], catch_exceptions=False
    )


def test_command_by_id_and_by_code(tiny_model, dataset_folder, tmp_path, monkeypatch):
    """A function of the dataset and the same code labelled anew give the same page, but for its heading."""
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    row = pq.read_table(dataset_folder / "java/validation.parquet").slice(3, 1).to_pylist()[0]
    (tmp_path / "f.java").write_bytes(row["code"].encode())
    by_id = "--id", row["id"], "--data", dataset_folder, "--split", "validation"
    by_code = "--code", "f.java", "--output", "new/page.html"
    cases = []
    config = "--config", "java"
    # the file's name says that it is Java
    for where, name in (((*by_id, *config), f"function {row['id']}"), (by_code, "f.java")):
        done = run(tiny_model, *where, "--relation", "children:parent->child")
        cases.append(case_in((tmp_path / done.stdout.strip()).read_text()))
        assert cases[-1].pop("about").endswith(name)
    assert cases[0] == cases[1]
    assert {path.name for path in tmp_path.rglob("*.html")} == {"attention.html", "page.html"}


def test_files_that_cannot_be_read_or_written(tiny_model, tmp_path):
    model = str(tiny_model)
    (tmp_path / "latin.py").write_bytes(b"def f(x):\n    return 'caf\xe9'\n")
    with pytest.raises(
        CodeSyntaxError, match="latin.py is no text in UTF-8 or the encoding that it declares"
    ):
        probing.show(model, tmp_path / "latin.py")
    with pytest.raises(CodeSyntaxError, match="cannot write"):
        probing.show(model, CODE).save(tmp_path / "latin.py" / "page.html")
