#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What README.md and docs/ name is there: pages, headings, files, options, variables, tests.

Pages are read by people who copy from them. So each of these is an error: a link or a page's section
that leads nowhere (also in comments of the source), a file in backticks that the tree doesn't have, an
option that its command does not take, a variable HALE_* that nothing reads, a variable that users may
set and that no page names, `make check ONLY=…` that no test answers to, a page of the manual that is
not installed, a page that is in none of the books or in two of them, a message in docs/troubleshooting.md that the
source does not have.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTION = r"'([^'\n]{3,80})'"
# In the text, and not of this tree.
OTHERS_OPTIONS = {"--output-filename", "--rankfile", "--prefix", "--oversubscribe", "--bind-to", "--tag-output", "--mca", "--user", "--comma-separated-output",
                  "--enable-recovery"}
MESSAGE = r"\| `([^`]+)` \|"  # in docs/troubleshooting.md
EXAMPLES = {"x_test.c", "mpi.h", "mpif.h"}
SOURCES = (".c", ".h", ".py", ".sh", ".pml", ".rules", ".socket", ".service")


def tracked():
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    return [f for f in out.splitlines() if os.path.isfile(os.path.join(ROOT, f))]


def read(path):
    with open(os.path.join(ROOT, path), errors="replace") as f:
        return f.read()


class Page:
    """A page of Markdown: its lines, and of each whether it stands in a block of code."""

    def __init__(self, path):
        self.path, self.lines, self.text = path, [], read(path)
        code = False
        for number, line in enumerate(self.text.splitlines(), 1):
            fence = line.startswith("```")
            code ^= fence
            if not fence:
                self.lines.append((number, line, code))
        self.headings = [re.sub(r"^#+ ", "", line) for _, line, code in self.lines
                         if not code and line.startswith("#")]
        bold = re.findall(r"^(?:- )?\*\*([^*]+)\*\*", self.text, re.M)
        self.sections = {s.replace("`", "").rstrip(".") for s in self.headings + bold}
        self.anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in self.headings}


class Docs:
    def __init__(self, hale):
        self.hale = hale
        self.files = tracked()
        self.names = {os.path.basename(f) for f in self.files}
        self.pages = {f: Page(f) for f in self.files if f == "README.md" or re.match(r"docs/(books/)?[\w-]+\.md$", f)}
        self.code = {f: read(f) for f in self.files if not f.startswith("docs/") and f != "README.md" and
                     not f.endswith((".svg", ".png")) and f != "scripts/docs.py"}
        self.all_code = "\n".join(self.code.values())
        self.bad = []

    def say(self, path, number, what):
        self.bad.append(f"{path}:{number}: {what}")

    # Links and sections

    def links(self):
        for page in self.pages.values():
            for number, line, code in page.lines:
                for target in [] if code else re.findall(r"\]\(([^)\s]+)\)", line):
                    self.link(page, number, target)

    def link(self, page, number, target):
        if re.match(r"\w+:", target):
            return
        file, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), file)) if file else page.path
        if path not in self.files:
            self.say(page.path, number, f"link to {target}: there is no {path}")
        elif anchor and anchor not in self.pages[path].anchors:
            self.say(page.path, number, f"link to {target}: {path} has no such heading")

    def sections(self):
        """docs/PAGE.md, 'Section' anywhere in the tree, and [page](page.md), 'Section' in pages."""
        texts = list(self.code.items()) + [(p.path, p.text) for p in self.pages.values()]
        for path, text in texts:
            for m in re.finditer(r"docs/([\w-]+\.md)(?:\W{1,9}" + SECTION + ")?", text):
                self.section(path, text, m, "docs/" + m[1], m[2])
            for m in re.finditer(r"\]\(((?:docs/)?[\w-]+\.md)\), " + SECTION, text):
                self.section(path, text, m, os.path.join("docs", os.path.basename(m[1])), m[2])

    def section(self, path, text, match, page, section):
        number = text.count("\n", 0, match.start()) + 1
        if page not in self.pages:
            self.say(path, number, f"there is no {page}")
        elif section and section not in self.pages[page].sections:
            self.say(path, number, f"{page} has no section '{section}'")

    # Files

    def quoted(self):
        """(page, line, words in backticks) of what is no block of code."""
        for page in self.pages.values():
            for number, line, code in page.lines:
                for span in [] if code else re.findall(r"`([^`]+)`", line):
                    yield page, number, span

    def paths(self):
        for page, number, span in self.quoted():
            for word in re.findall(r"(?<![\w/.~$<-])[\w*][\w./*-]*", span):
                if not self.has(word.rstrip(".")):
                    self.say(page.path, number, f"there is no {word}")

    def has(self, word):
        folder = word.split("/")[0] if "/" in word else None
        if folder in ("src", "tests", "bench", "scripts", "docs", "examples", "data", "include"):
            return any(fnmatch.fnmatch(f, word) or f.startswith(word.rstrip("/") + "/") for f in self.files) \
                or word.startswith("bench/results") or self.built(word)
        if folder is None and word.endswith(SOURCES):
            return bool(fnmatch.filter(self.names, word)) or word in EXAMPLES
        return True

    def built(self, word):
        """A program of the build folder, named as its source is."""
        return any(f.startswith(word + ".") for f in self.files)

    # Options

    def options_of(self, command):
        if command not in self.known:
            r = subprocess.run([self.hale, command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, check=False)
            self.known[command] = None
            if r.returncode == 0:
                self.known[command] = set(re.findall(r"--[a-z][a-z-]*[a-z]", r.stdout)) | {"--help"}
                if "Options are those of hale run" in r.stdout:
                    self.known[command] |= self.options_of("run")
        return self.known[command]

    def options(self):
        self.known = {}
        for page in self.pages.values():
            for number, line, code in page.lines:
                if page.path == "docs/troubleshooting.md":
                    line = re.sub(MESSAGE, "", line)
                for part in [line] if code else re.findall(r"`([^`]+)`", line):
                    self.commands(page, number, part)
        union = set().union(*[o for o in self.known.values() if o])
        for page, number, span in self.quoted():
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", span):
                if option not in union and option not in OTHERS_OPTIONS and option not in self.all_code:
                    self.say(page.path, number, f"nothing takes {option}")

    def commands(self, page, number, text):
        """Each `hale COMMAND …` of a line, as far as its own words go."""
        text = re.sub(r"\s#.*|'[^']*'|\"[^\"]*\"", " ", text)
        for command, rest in re.findall(r"(?<![\w./-])hale ([a-z]+)\b([^;|&]*)", text):
            if command in ("help", "agent"):  # what hale says to its agents is its own affair
                continue
            taken = self.options_of(command)
            if taken is None:
                self.say(page.path, number, f"there is no hale {command}")
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", rest.split(" -- ")[0]):
                if option not in taken | OTHERS_OPTIONS:
                    self.say(page.path, number, f"hale {command} does not take {option}")

    # Variables

    def variables(self):
        said = set()
        for page in self.pages.values():
            for number, line, _ in page.lines:
                for name in re.findall(r"\bHALE_[A-Z][A-Z_0-9]*[A-Z0-9]\b", line):
                    said.add(name)
                    if not re.search(rf"\b{name}\b", self.all_code):
                        self.say(page.path, number, f"nothing knows {name}")
        manual = "\n".join(read(f) for f in self.files if f.startswith("docs/man/"))
        source = {f: t for f, t in self.code.items() if f.startswith("src/") and not f.endswith("_test.c")}
        # what hale itself hands to its processes is not for users to set
        ours = set(re.findall(r'(?:setenv\(|")(HALE_[A-Z_0-9]+)(?:=|", )', "\n".join(source.values())))
        for path, text in source.items():
            for m in re.finditer(r'getenv\("(HALE_[A-Z_0-9]+)"\)', text):
                if m[1] not in said | ours and m[1] not in manual:
                    self.say(path, text.count("\n", 0, m.start()) + 1, f"{m[1]} is on no page")

    # Tests, and the manual

    def tests(self):
        units = re.findall(r"'([\w/]*?(\w+_(?:test|fuzz)))(?:\.c)?'", self.all_code)
        names = self.names | {u for _, u in units}
        names |= {d for f, t in self.code.items() if re.match(r"tests/\w+_test\.py$", f)
                  for d in re.findall(r"^def (\w+)", t, re.M)}
        for page in self.pages.values():
            for number, line, code in page.lines:
                spans = [line] if code else re.findall(r"`([^`]+)`", line)
                for only in [o for s in spans if "make fuzz" not in s for o in re.findall(r"ONLY=([\w]+)", s)]:
                    if only != "name" and not any(only in n for n in names):
                        self.say(page.path, number, f"no test answers to ONLY={only}")

    # Books and messages

    def books(self):
        """Each page is in one of the books (docs/books), which have no others."""
        where = {}
        for path, page in self.pages.items():
            if not path.startswith("docs/books/") or path == "docs/books/index.md":
                continue
            number = 0
            for number, line, code in page.lines:
                if not code or line.startswith(":") or not line:
                    continue
                to = os.path.normpath(os.path.join("docs/books", line + ".md"))
                if to not in self.files:
                    self.say(path, number, f"there is no {to}")
                elif to in where:
                    self.say(path, number, f"{to} is in {where[to]} already")
                where[to] = path
        for page in sorted(self.pages):
            if page != "README.md" and not page.startswith("docs/books/") and page not in where:
                self.say(page, 1, "is in none of the books: name it in docs/books/user.md, admin.md or design.md")

    def messages(self):
        """What docs/troubleshooting.md quotes, … for what differs, is one string of the source."""
        source = "\n".join(t for f, t in self.code.items() if re.match(r"src/.*\.[ch]$", f) and not f.endswith("_test.c"))
        joined = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", source).splitlines()  # literals that follow each other are one
        quoted = 0
        for number, line, _ in self.pages["docs/troubleshooting.md"].lines:
            m = re.match(MESSAGE, line)
            quoted += m is not None
            parts = m[1].split("…") if m else []
            longest = max(parts, key=len, default="")
            whole = re.compile(".*?".join(map(re.escape, parts)))
            if m and not any(longest in s and whole.search(s) for s in joined):
                self.say("docs/troubleshooting.md", number, f"Hale never says {m[1]}")
        if not quoted:
            self.say("docs/troubleshooting.md", 1, "quotes no message")

    def manual(self):
        made = set(re.findall(r"'(\w+)'", re.search(r"foreach c : \[(.*?)\]", read("meson.build"), re.S)[1]))
        for page in self.pages.values():
            for number, line, _ in page.lines:
                for name, volume in re.findall(r"\b(hale[a-z-]*)\((\d)\)", line):
                    if f"docs/man/{name}.{volume}" not in self.files and not (volume == "1" and name[5:] in made):
                        self.say(page.path, number, f"there is no {name}({volume})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    docs = Docs(os.path.join(os.path.abspath(parser.parse_args().build), "hale"))
    for look in (docs.links, docs.sections, docs.paths, docs.options, docs.variables, docs.tests, docs.manual, docs.books,
                 docs.messages):
        look()
    print("\n".join(docs.bad))
    sys.exit(1 if docs.bad else 0)


main()
