"""The page of a board in a browser: what it shows, search, contents, the page of a model, narrow windows."""

from __future__ import annotations

import pytest
from support.evidence.models import named, other_model, save

from probing.publish.board import read
from probing.report.board import save as save_board

pytestmark = pytest.mark.slow

NAMES = ["big-lab/base", "big-lab/large", "user/mouse", "user/vole"]


@pytest.fixture(scope="module")
def written(evidence, few_functions, tmp_path_factory):
    """The page of a board of NAMES, one of them in the other direction."""
    folder = tmp_path_factory.mktemp("board")
    results = {"test": evidence.probed.test, "validation": evidence.probed.validation}
    for number, name in enumerate(NAMES):
        save(other_model(results, name, 0.2 * number), folder / "sent")
    save(named(results, "user/turned", direction="dependent-to-head"), folder / "sent")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESYNTAX_CACHE", str(folder / "cache"))
        return save_board(read([folder / "sent"], str(few_functions)), folder / "board")


@pytest.fixture
def opened(written, page):
    page.goto(written.as_uri())
    return page


def models(page):
    """The models whose rows can be seen, by name."""
    links = page.locator("tbody:not([hidden]) > tr:not([hidden]) a[href^='models/']")
    return sorted({link.text_content() for link in links.all() if link.is_visible()})


def test_all_claimed_models_are_shown(opened):
    assert models(opened) == sorted([*NAMES, "user/turned"])


def test_a_search_shows_the_models_that_have_the_words(opened):
    box = opened.get_by_role("searchbox", name="Models")
    box.fill("BIG-lab")
    assert models(opened) == ["big-lab/base", "big-lab/large"]
    box.fill("")
    assert models(opened) == sorted([*NAMES, "user/turned"])


def test_a_search_keeps_the_baselines(opened):
    opened.get_by_role("searchbox", name="Models").fill("mouse")
    assert opened.get_by_text("combined baseline").first.is_visible()


def test_tables_of_other_directions_stand_apart(opened):
    titles = opened.locator("h2").all_text_contents()
    assert [title for title in titles if "dependent-to-head" in title] != []
    assert [title for title in titles if "head-to-dependent" in title] != []


def test_contents_lead_to_a_table(opened):
    opened.get_by_text("Contents", exact=True).click()
    opened.get_by_role("link", name="dependent-to-head").first.click()
    assert opened.locator("h2", has_text="dependent-to-head").is_visible()


def test_the_page_of_a_model_is_reached_by_keyboard(opened):
    link = opened.locator("a[href^='models/']").first
    name = link.text_content()
    link.focus()
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    opened.keyboard.press("Enter")
    opened.wait_for_url("**/models/*.html")
    assert opened.locator("h1").text_content().startswith(name)


@pytest.mark.parametrize("width", [360, 1400])
def test_no_page_is_wider_than_its_window(width, opened):
    opened.set_viewport_size({"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
