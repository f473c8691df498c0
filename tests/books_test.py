#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The books of docs/books (scripts/books.py). That each page is in one of them: scripts/docs.py."""

import importlib.util

from lib import *


def books():
    spec = importlib.util.spec_from_file_location("books", os.path.join(ROOT, "scripts/books.py"))
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


@test
def dead_links_of_a_site_are_named(s):
    os.makedirs(s.path("site"))
    s.write("site/a.html", '<h1 id="top1">x</h1><a href="b.html#there">1</a><a href="b.html#not">2</a><a href="c.html">3</a>'
            '<a href="https://example.org/x">4</a><img src="no.svg"><a href="#top1">5</a><a href="#gone">6</a>')
    s.write("site/b.html", '<p id="there">x</p><a href="a.html">1</a>')
    dead = sorted(books().dead_links(s.path("site")))
    expect(dead == ["a.html: #gone: there is no such place", "a.html: b.html#not: there is no such place",
                    "a.html: there is no c.html", "a.html: there is no no.svg"], *dead)


@test
def three_books_are_a_site_and_pdfs(s):
    if not LONG:
        skip("HALE_LONG=1")
    r = s.run(PYTHON, os.path.join(ROOT, "scripts/books.py"), s.path("books"), limit=900)
    expect(r.status == 0 and r.out.endswith("html/index.html\n"), r)
    site = s.path("books/html")
    for name, least in (("user", 20), ("admin", 11), ("design", 15)):
        with open(os.path.join(site, name + ".pdf"), "rb") as f:
            text = f.read()
        expect(text.startswith(b"%PDF"), name)
        pages = re.search(r"```\{toctree\}.*", open(os.path.join(ROOT, f"docs/books/{name}.md")).read(), re.S)[0]
        named = re.findall(r"^\.\./\S+$", pages, re.M)
        expect(len(named) >= least, name, named)
        for page in named:
            expect(os.path.exists(os.path.join(site, "docs/books", page + ".html")), page)


main()
