"""Hostile texts: names and code that would be run, shown as something else, or obeyed by a terminal or a spreadsheet."""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

from codesyntax_dataset import card, sources
from codesyntax_dataset.errors import CodeSyntaxError
from codesyntax_dataset.safe_files import escaped, printable
from probing.cli.group import SECTIONS, main, note
from probing.publish.client import plain_errors
from probing.report import document, figures, pages
from probing.report.document import Column, Section, Table
from probing.report.folder import Report, markdown, save
from probing.report.kinds import CODE, NAME
from probing.report.pages import as_shown, environment, filled_page, readable

NAMES = {
    "markup": "<img src=x onerror=alert(1)><script>alert(1)</script>",
    "a formula": '=HYPERLINK("http://example.org")',
    "another formula": "@SUM(1)",
    "a sign": "-1+cmd",
    "a tab and a formula": "\t=1",
    "escapes": "\x1b]0;owned\x07\x1b[2J",
    "a direction": "a\u202eb\u2066c",
    "a heading": "a\n# owned\r## owned",
    "mathtext": "a$b$ \\frac{$",
    "controls": "a\0b\x08c\x9b",
    "rich markup": "[/red][link=http://example.org]x",
    "a template": "{{ 7 * 7 }}{% raw %}",
}


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def name(request):
    return request.param


def test_a_cell_of_csv_is_no_formula(name):
    ((head, written),) = [
        list(
            csv.reader(
                io.StringIO(
                    Table("t", "t", [Column("relation", NAME)], [[name]]).to_csv(), newline=""
                )
            )
        )
    ]
    assert head == ["relation"]
    assert written[0][0] not in "=+-@"
    lines = written[0].removeprefix("'").split("\n")
    assert lines == [escaped(line) for line in name.split("\n")] or name.startswith("'")


def test_numbers_in_csv_stay_numbers():
    rows = [["-0.5"], [-0.5], ["+1e3"], [None]]
    assert Table("t", "t", [Column("x")], rows).to_csv() == 'x\n-0.5\n-0.5\n+1e3\n""\n'


def test_a_name_is_no_heading_of_a_report(name):
    text = markdown([Section("s", name, [name, Table("t", name, [Column(name)], [[name]])])])
    headings = [line for line in re.split(r"[\r\n]", text) if line.startswith("#")]
    assert len(headings) == 1
    assert not set(text) & set("\0\x1b\x08\u202e\u2066")


def test_a_name_is_no_heading_of_a_card(name):
    plain = card._plain(name)
    assert plain.isprintable()
    assert not set("`|<") & set(plain)


def test_a_folder_with_any_name_has_a_printable_one(tmp_path):
    folder = tmp_path / "a\n# owned\x1b[2J\udcff"
    folder.mkdir()
    assert sources.shown(str(folder)) == "a\\n# owned\\x1b[2J\\udcff"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [NAMES[what] for what in ("markup", "mathtext", "controls", "a heading")]
)
def test_a_figure_is_drawn_with_any_name_and_valid(name):
    with figures.style():
        drawn = figures.lay_out(
            figures.dots([name], {name: [figures.Dots(name, [1.0], "#000000")]})
        )
        root = ElementTree.fromstring(figures.to_svg(drawn))
        assert figures.as_file(lambda: drawn, "png")
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert readable(name).split("\n")[0] in " ".join(texts) or "\t" in name or "\n" in name


@pytest.mark.slow
def test_a_page_shows_names_and_does_not_run_them(page, tmp_path):
    sections = [
        Section(f"s{n}", name, [name, Table(f"t{n}", name, [Column(name, NAME)], [[name]])])
        for n, name in enumerate(NAMES.values())
    ]
    title = NAMES["markup"]
    page.goto(save(Report("report", title, title, sections), tmp_path / "report").as_uri())
    told = [text.split() for text in page.locator("tbody td").all_inner_texts()]
    assert told == [as_shown(name).replace("\0", "\ufffd").split() for name in NAMES.values()]
    assert page.locator("img, td script").count() == 0


INJECTED = {
    "a script": "<script>document.title = 'owned'</script>",
    "a script with a nonce": "<script nonce='{nonce}'>document.title = 'owned'</script>",
    "a handler": "<img src=x onerror=\"document.title = 'owned'\">",
    "a base": "<base href='https://example.org/'>",
    "a frame": "<iframe srcdoc=\"<script>parent.document.title = 'owned'</script>\"></iframe>",
    "a style sheet": "<style>body {{ display: none }}</style>",
    "a link": "<link rel=stylesheet href='https://example.org/a.css'>",
}


@pytest.mark.slow
def test_what_were_injected_is_stopped_by_the_policy(browser, tmp_path):
    template = environment().from_string(
        '{% extends "base.html.jinja" %}{% block title %}ours{% endblock %}'
        '{% block body %}{{ text | safe }}<p>shown</p>{% endblock %}{% block script %}document.body.id = "ran"{% endblock %}'
    )
    page, asked, file = browser.new_page(), [], tmp_path / "page.html"
    page.on(
        "request", lambda request: asked.append(request) if request.url.startswith("http") else None
    )
    for what, text in INJECTED.items():
        guess = hashlib.sha256(text.encode()).hexdigest()[:32]
        file.write_text(filled_page(template, text=text.format(nonce=guess)), encoding="utf-8")
        page.goto(file.as_uri())
        assert (page.title(), page.locator("p").is_visible()) == ("ours", True), what
        assert page.locator("body").get_attribute("id") == "ran", what
        assert page.evaluate("document.baseURI").startswith("file:"), what
    assert {request.failure for request in asked} <= {"csp"}
    page.close()


@pytest.mark.parametrize(
    "template", [name for name in environment().list_templates() if name.endswith(".html.jinja")]
)
def test_every_script_and_style_sheet_of_ours_knows_the_nonce(template):
    text = Path(pages.__file__).with_name(template).read_text(encoding="utf-8")
    assert ("<head>" in text) == ("http-equiv" in text) == (template == "base.html.jinja")
    if template not in ("base.html.jinja", "drawings.html.jinja"):  # of pages and of their macros
        assert text.startswith('{% extends "')
    for tag in re.findall(r"<(?:script|style)[^>]*>", text):
        assert 'nonce="{{ nonce }}"' in tag or 'type="application/' in tag


def test_a_page_has_the_same_bytes_and_another_page_another_nonce():
    template = environment().from_string("{{ nonce }} {{ text }}")
    first, again, other = (filled_page(template, text=text) for text in ("a", "a", "b"))
    assert first == again
    assert first.split()[0] != other.split()[0]


def test_a_terminal_is_told_nothing(name, capsys):
    columns = [Column(name, NAME, name), Column(name, CODE)]
    document.print_parts(
        [Table("relations", name, columns, [[name, name]], name, totals=[[name, ""]]), name]
    )
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))


def test_errors_and_notes_tell_a_terminal_nothing(name, monkeypatch):
    monkeypatch.setitem(SECTIONS, "Hostile", ("hostile",))

    @main.command("hostile")
    def hostile():
        note(name)
        raise CodeSyntaxError(f"cannot read {name}")

    try:
        ran = CliRunner().invoke(main, ["hostile"])
    finally:
        del main.commands["hostile"]
    assert ran.exit_code == 1
    assert "cannot read" in ran.output
    assert all(line.isprintable() for line in ran.output.split("\n"))


def test_warnings_that_the_hub_sends_are_printable():
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("huggingface_hub")
    logger.addHandler(handler)
    try:
        with plain_errors("user/name"):
            logger.warning("The Hub says %s", "\x1b]0;owned\x07")
    finally:
        logger.removeHandler(handler)
    assert [record.getMessage() for record in records] == [
        printable("The Hub says \x1b]0;owned\x07")
    ]


ARGUMENTS = {
    "verified": (3, "verify", "a\udcff\x1b[2J.json", "b.json"),
    "built from": (1, "build", "--source", "a\udcff.py", "--config", "python", "--output", "data"),
    "shown": (1, "show", "--labels", "--code", "a\udcff.py"),
    "scored": (1, "score", "a\udcff.ledger.parquet"),
    "reported": (1, "report", "a\udcff"),
    "made a board": (1, "board", "a\udcff", "--data", "data"),
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_an_argument_that_is_no_text_is_told_in_a_line(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, *arguments = arguments
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == status
    assert "\\udcff" in ran.output
    assert all(line.isprintable() for line in ran.output.split("\n"))
