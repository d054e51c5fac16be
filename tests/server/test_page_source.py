"""The page's files: nothing in them can turn data into markup, run text as code, or load from elsewhere."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

FILES = {item.name: item.read_text() for item in (files("tacit.server") / "page").iterdir()}
FORBIDDEN = {
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|ContextualFragment|setHTML": "markup from text",
    r"\beval\b|new Function|import\(|javascript:": "code from text",
    r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9-]+\.[a-z]": "an address elsewhere",
    r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=": "something inline",
    r"localStorage\.setItem\((?!\"tacit\.theme\")": "something that outlives the tab",
}


def test_the_page_is_installed() -> None:
    assert {"index.html", "page.js", "page.css", "icon.svg"} <= set(FILES)


@pytest.mark.parametrize("pattern", FORBIDDEN, ids=FORBIDDEN.get)
def test_no_file_has(pattern: str) -> None:
    assert [name for name, text in FILES.items() if re.search(pattern, text)] == []


def test_every_address_in_the_page_is_a_file_of_it() -> None:
    named = set(re.findall(r'(?:src|href)="([\w.-]+\.\w+)"', FILES["index.html"]))
    named |= {name for text in FILES.values() for name in re.findall(r'from "\./([\w.-]+)"', text)}
    assert named | {"index.html"} == set(FILES)
