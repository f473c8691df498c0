#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""books.py TO: the three books of docs/books as a site in TO/html, each as a PDF in it, too.

Sphinx makes the site. A book is printed by weasyprint from Sphinx's single page of it: of links to pages that are in
another book only the words are left. A warning of Sphinx's is an error, as is a link or a picture of the site that
leads nowhere. Nothing is asked of the network."""

import html.parser
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOKS = os.path.join(ROOT, "docs/books")


def sphinx(builder, to, work, book=None):
    env = dict(os.environ, SOURCE_DATE_EPOCH=commit_time(), **({"HALE_BOOK": book} if book else {}))
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, "-c", BOOKS,
                    "-d", os.path.join(work, "doctrees-" + (book or "all")), ROOT, to], check=True, env=env)


def commit_time():
    r = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], stdout=subprocess.PIPE, text=True, check=False)
    return os.environ.get("SOURCE_DATE_EPOCH") or r.stdout.strip() or "0"


def drawn(folder, name):
    """weasyprint can't draw the markers of gnuplot's pictures, librsvg can."""
    name = os.path.normpath(os.path.join(folder, name))
    subprocess.run(["rsvg-convert", "--zoom", "2.5", "-o", name + ".png", name + ".svg"], check=True)
    return os.path.relpath(name + ".png", folder)


def contents(text):
    """Of a printed book: its pages, with the page's number behind (print.css)."""
    pages = re.findall(r'<section id="([^"]+)">\n<h2>(.*?)</h2>', text)
    return '<div class="toc"><ul>' + "".join(f'<li><a href="#{i}">{title}</a></li>' for i, title in pages) + "</ul></div>"


def printed(book, site, work):
    to = os.path.join(work, book)
    sphinx("singlehtml", to, work, book)
    page = os.path.join(to, f"docs/books/{book}.html")
    with open(page) as f:
        text = f.read()
    ids = set(re.findall(r'\sid="([^"]+)"', text))

    def link(m):
        return m[0] if m[1].startswith(("http:", "https:")) or m[1].lstrip("#") in ids and "#" in m[1] else m[2]

    text = re.sub(r'<a class="headerlink".*?</a>', "", text)
    # Sphinx names a page within the single one by its file's name before the #
    text = re.sub(r'href="[^"#:]*#', 'href="#', text)
    text = re.sub(r'(?s)<a\b[^>]*?\shref="([^"]+)"[^>]*>(.*?)</a>', link, text)
    text = text.replace("</p>", "</p>\n" + contents(text), 1)
    text = re.sub(r"<link[^>]*>|(?s:<script.*?</script>)", "", text)
    text = re.sub(r'src="([^"]+)\.svg"', lambda m: f'src="{drawn(os.path.dirname(page), m[1])}"', text)
    with open(page, "w") as f:
        f.write(text)
    subprocess.run(["weasyprint", "-q", "-s", os.path.join(BOOKS, "print.css"), page, os.path.join(site, book + ".pdf")],
                   check=True)


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.targets = set(), []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given[k] for k in ("id", "name") if given.get(k)}
        self.targets += [given[k] for k in ("href", "src") if given.get(k)]


def links_of(site):
    pages = {}
    for folder, _, files in os.walk(site):
        for name in [n for n in files if n.endswith(".html")]:
            path = os.path.join(folder, name)
            pages[path] = Links()
            with open(path) as f:
                pages[path].feed(f.read())
    return pages


def dead_links(site):
    pages = links_of(site)
    for path, page in pages.items():
        for target in page.targets:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(url.path))) if url.path else path
            if not os.path.exists(to):
                yield f"{os.path.relpath(path, site)}: there is no {target}"
            elif url.fragment and to in pages and urllib.parse.unquote(url.fragment) not in pages[to].ids | {"", "top"}:
                yield f"{os.path.relpath(path, site)}: {target}: there is no such place"


def main():
    work = os.path.abspath(sys.argv[1])
    site = os.path.join(work, "html")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    sphinx("html", site, work)
    for book in ("user", "admin", "design"):
        printed(book, site, work)
    shutil.rmtree(os.path.join(site, ".doctrees"), ignore_errors=True)
    dead = sorted(set(dead_links(site)))
    print("\n".join(dead))
    if dead:
        sys.exit(1)
    print(f"{site}/index.html")


if __name__ == "__main__":
    main()
