"""Pages of the site that stand elsewhere in the repository: those that README.md leads to, at the same paths, so that
their links hold. Sources that they link to are pages, too, and names of the API are links to it."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parent.parent

_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)(#[^)]*)?\)")

_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", flags=re.DOTALL | re.MULTILINE)

_NAME = re.compile(
    r"<code>(((?:probing|codesyntax_dataset|codesyntax_metric)\.[\w.]+)[^<]*)</code>"
)


def on_config(config: MkDocsConfig) -> None:
    """Headings have the anchors that they have on a host of repositories."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")


def on_files(files: Files, config: MkDocsConfig) -> None:
    waiting, known = ["README.md"], set()
    while waiting:
        path = waiting.pop()
        if path in known or not (ROOT / path).is_file():  # mkdocs says what is not there
            continue
        known.add(path)
        if path.endswith(".py"):
            source = (ROOT / path).read_text(encoding="utf-8")
            page = {"content": f"# {path}\n\n````python\n{source}````\n"}
            path += ".md"
        else:
            page = {"abs_src_path": str(ROOT / path)}
        files.append(File.generated(config, path, **page, inclusion=InclusionLevel.INCLUDED))
        if path.endswith(".md") and "abs_src_path" in page:
            text = _CODE.sub("", (ROOT / path).read_text(encoding="utf-8"))
            waiting += [normpath(join(dirname(path), match[1])) for match in _LINK.finditer(text)]


def on_page_markdown(markdown: str, **_: object) -> str:
    """Sources are pages; and what is in an item of a numbered list is indented by three, as everywhere, but by four in
    Python-Markdown."""
    markdown = re.sub(r"(\]\((?![a-z]+:)[^)#\s]+\.py)\)", r"\1.md)", markdown)
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    parts[::2] = [re.sub(r"^   ", "    ", text, flags=re.MULTILINE) for text in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, **_: object) -> str:
    return _NAME.sub(r'<autoref optional identifier="\2"><code>\1</code></autoref>', html)
