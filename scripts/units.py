#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Groups C sources into units that the compiler takes in one go, and prints the paths of the units.

  scripts/units.py FOLDER NAME SOURCE …     writes FOLDER/NAME_K.c, which include the sources

Most of what a small source costs is starting the compiler and reading headers: a build of everything by
units takes less than half as long. Only those sources come into one unit that do not see each other's private
names: what one has at file scope for itself (static objects, enumerators, types) is nothing that another
one or its headers have at file scope or call. Macros end with their source. So a unit means what its
sources mean one by one, and nothing has to be named for its sake.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST = 10  # sources of one unit: a few units for each core remain
WORD = re.compile(r"[A-Za-z_]\w*")
# what changes all that follows in a unit
ALONE = re.compile(r"^\s*#\s*pragma\b|target_clones|^\s*#\s*include\s*[<\"](linux|asm)/", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


def plain(text):
    """Without comments and strings."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"|\'(\\.|[^\'\\\n])*\'', " ", text)


def top_level(text):
    """What stands outside of braces, each pair of which remains as {}."""
    depth, out = 0, []
    for c in text:
        depth -= c == "}"
        if depth == 0:
            out.append(c)
        depth += c == "{"
    return "".join(out)


def own_names(text):
    """What nobody else may have: names of static objects, enumerators, types."""
    names = set()
    code = re.sub(r"^\s*#(.*\\\n)*.*$", "", text, flags=re.M)
    for body in re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", code):
        names.update(m for part in body.split(",") for m in WORD.findall(part.split("=")[0])[:1])
    names.update(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", code))
    top = top_level(code)
    names.update(re.findall(r"\btypedef\b[^;]*?(\w+)\s*;", top))
    top = re.sub(r"\b(struct|union|enum)\s*\w*\s*\{\}", "int ", top).replace("{}", ";")
    for declared in re.findall(r"\bstatic\b([^;]*)", top):
        names |= declared_names(declared)
    return names


def declared_names(text):
    """Of what follows `static`: `int a, *b[3] = …`, `int (*f)(int) = …`, `int g(int)`."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", text, flags=re.S).split("=")[0]
    pointer = re.search(r"\(\s*\*+\s*(?:const\s+)?(\w+)", text)
    if pointer:
        return {pointer[1]}
    if "(" in text:
        return set(WORD.findall(text[:text.index("(")])[-1:])
    text = re.sub(r"\[[^\]]*\]", " ", text)
    return {words[-1] for words in map(WORD.findall, text.split(",")) if words}


def called(text):
    return set(re.findall(r"\b(\w+)\s*\(", text))


class Source:
    folders = [os.path.join(ROOT, "src"), os.path.join(ROOT, "include")]
    headers = {}  # path -> the names that it brings

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            raw = f.read()
        text = plain(raw)
        self.path = path
        self.own = own_names(text)
        self.macros = re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M)
        first = re.search(r"^\s*#\s*define\b", text, re.M)
        # a macro that is set for a header
        self.alone = bool(ALONE.search(raw)) or bool(first and re.search(r"^\s*#\s*include\b", text[first.end():], re.M))
        self.seen = self.own | called(text)
        for name in INCLUDE.findall(raw):
            self.seen |= self.header(name, os.path.dirname(path))

    def header(self, name, beside):
        """The names that a header of ours brings, with those of the headers that it includes."""
        path = next((p for p in (os.path.join(f, name) for f in [beside, *self.folders]) if os.path.exists(p)), None)
        if not path:
            return set()
        if path not in self.headers:
            self.headers[path] = set()  # of one that includes itself
            with open(path, encoding="utf-8") as f:
                raw = f.read()
            text = plain(raw)
            names = own_names(text) | called(text) | set(re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M))
            for declared in re.findall(r"\bextern\b([^;]*)", text):
                names |= declared_names(declared)
            for inner in INCLUDE.findall(raw):
                names |= self.header(inner, os.path.dirname(path))
            self.headers[path] = names
        return self.headers[path]


class Unit:
    def __init__(self, source):
        self.sources, self.own, self.seen = [source], set(source.own), set(source.seen)

    def takes(self, source):
        return (len(self.sources) < MOST and not source.alone and not self.sources[0].alone and
                not self.own & source.seen and not source.own & self.seen)

    def add(self, source):
        self.sources.append(source)
        self.own |= source.own
        self.seen |= source.seen


def grouped(sources):
    units = []
    for source in sources:
        for unit in units:
            if unit.takes(source):
                unit.add(source)
                break
        else:
            units.append(Unit(source))
    return units


def write(path, text):
    """Only if it changes, so that nothing is compiled again for nothing."""
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    except OSError:
        pass
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main():
    folder, name, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for i, unit in enumerate(grouped([Source(os.path.abspath(p)) for p in paths])):
        if len(unit.sources) == 1:
            print(os.path.relpath(unit.sources[0].path, ROOT))
            continue
        path = os.path.join(folder, f"{name}_{i}.c")
        text = "".join(f'#include "{s.path}"\n' + "".join(f"#undef {m}\n" for m in s.macros) for s in unit.sources)
        write(path, text)
        print(path)


main()
