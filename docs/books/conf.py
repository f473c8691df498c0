# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx's settings for the three books: `make docs` (scripts/books.py). The pages stay where they are, in docs/ and
at the tree's top; books/user.md, admin.md and design.md arrange them. HALE_BOOK=user: that book alone, to be printed."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def pages_of(book):
    """What the lists of contents of a book name, as Sphinx calls them."""
    lists = re.findall(r"```\{toctree\}\n(.*?)```", read(f"docs/books/{book}.md"), re.S)
    names = [line.split("<")[-1].rstrip(">") for text in lists for line in text.splitlines() if line and line[0] not in ":"]
    return [os.path.normpath(os.path.join("docs/books", name)) for name in names]


project = "Hale"
author = "The Hale authors"
copyright = "The Hale authors, BSD-3-Clause"
version = release = re.search(r"version : '([\d.]+)'", read("meson.build"))[1]
book = os.environ.get("HALE_BOOK")
root_doc = f"docs/books/{book}" if book else "docs/books/index"
include_patterns = [f"{name}.md" for b in ([book] if book else ["user", "admin", "design"]) for name in
                    [f"docs/books/{b}", *pages_of(b)]] + ([] if book else ["docs/books/index.md"])
exclude_patterns = ["build*/**"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"
# Within one printed book, pages of the others are only named.
suppress_warnings = ["myst.header"] + (["myst.xref_missing", "ref.myst", "myst"] if book else [])

html_theme = "basic" if book else "furo"
html_title = f"Hale {release}"
html_static_path = [] if book else ["books.css"]
html_css_files = [] if book else ["books.css"]
html_extra_path = [] if book else ["front"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_sidebars = {} if book is None else {"**": []}
