#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""manpage.py HALE COMMAND FILE [MORE]: the man page of a command of hale, from what its --help prints.

The lines before the first empty one are the synopsis. A row is an option, or a few words, indented by two blanks, then
two blanks or more and its text, which goes on in the lines that are indented further. A few words without an indent
before a row are a heading. "exit status: …" begins a section.

MORE has what a page says beyond --help: `@ --option` is what stands behind that option's text, `@ SECTION` a section, or
the end of one that --help has. Its text is written like that of --help. An option or command that is not there ends this
with an error, so that no page says what the command does not."""

import os
import re
import subprocess
import sys

SECTIONS = ["DESCRIPTION", "OUTPUT AND INPUT", "SIGNALS", "FILES", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES"]
TITLED = re.compile(r"(?i)(signals|exit status|environment): +(?=\S)")


def said(hale, *words):
    return subprocess.run([hale, "help", *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def name_line(overview, command):
    m = re.search(rf"(?m)^  hale {command}\b(?:.(?!  ))*.\s{{2,}}(\S.*(?:\n {{40,}}\S.*)*)", overview)
    return re.sub(r"\s+", " ", m[1]) if m else "a command of hale"


def is_row(line):
    return re.match(r" {2,4}--?[a-z]| *[a-z]+  |  \S(?:\S| (?! ))*  +\S", line)


def is_heading(line, following):
    return re.fullmatch(r"[a-z][a-z ,]{0,39}", line) and following is not None and is_row(following)


def blocks(lines):
    """('row', head, text), ('text', lines), ('heading', line)"""
    paragraph = []
    i = 0
    while i < len(lines):
        heading = is_heading(lines[i], lines[i + 1] if i + 1 < len(lines) else None)
        if not is_row(lines[i]) and not heading:
            paragraph.append(lines[i])
            i += 1
            continue
        if paragraph:
            yield "text", paragraph
            paragraph = []
        if heading:
            yield "heading", lines[i]
            i += 1
            continue
        indent = len(lines[i]) - len(lines[i].lstrip())
        head, _, text = re.match(r"(\S+(?: \S+)*?)($|  +)(.*)$", lines[i].strip()).groups()
        rest = [text] if text else []
        i += 1
        while i < len(lines) and lines[i].strip() and len(lines[i]) - len(lines[i].lstrip()) > indent:
            rest.append(lines[i].strip())
            i += 1
        yield "row", head, rest
    if paragraph:
        yield "text", paragraph


def names_in(head):
    return re.findall(r"(?<![\w-])--?[a-z][a-z-]*", head)


def body(lines, notes):
    out, in_list = [], False
    for kind, *what in blocks(lines):
        if kind == "row":
            if not in_list:
                out.append(".Bl -tag -width Ds")
                in_list = True
            beyond = [x for name in names_in(what[0]) for x in notes.pop(name, [])]
            if beyond and what[1] and what[1][-1][-1] not in ".;:":
                what[1][-1] += "."
            out += [".It Li " + escaped(what[0]).replace('"', '\\(dq').replace(" ", "\\ "), *map(escaped, what[1] + beyond)]
            continue
        if in_list and (kind == "heading" or any(x.strip() for x in what[0])):
            out.append(".El")
            in_list = False
        if kind == "heading":
            out.append(".Ss " + what[0][0].upper() + what[0][1:])
            continue
        before = True  # an empty line
        for line in what[0]:
            if not line.strip():
                before = True
                continue
            if line.startswith((" ", "hale ")):  # as it is typed
                out += [".Pp" if before else ".br", "\\&" + escaped(line)]
            else:
                out += ([".Pp"] if before else []) + [escaped(line)]
            before = False
    if in_list:
        out.append(".El")
    return [x for i, x in enumerate(out) if not (x == ".Pp" and (i == 0 or out[i - 1] == ".Pp" or
                                                                 out[i - 1].startswith(".Ss")))]


def parted(lines):
    """The lines of --help by section: {name: lines}."""
    found, name = {"DESCRIPTION": []}, "DESCRIPTION"
    for i, line in enumerate(lines):
        m = TITLED.match(line) if i == 0 or not lines[i - 1].strip() else None
        if m:
            name = m[1].upper()
            line = line[m.end():]
            line = line[0].upper() + line[1:]
        elif name != "DESCRIPTION" and not line.strip():
            name = "DESCRIPTION"
        found.setdefault(name, []).append(line)
    return found


def read_more(path):
    """({option: lines}, {section: lines})"""
    notes, sections, into = {}, {}, None
    with open(path) as f:
        for line in f.read().splitlines():
            if line.startswith("@ "):
                name = line[2:]
                into = (notes if name.startswith("-") else sections).setdefault(name, [])
            elif into is not None and not line.startswith("#"):
                into.append(line)
    return {k: [x for x in v if x.strip()] for k, v in notes.items()}, sections


def main():
    hale, command, to, *more = sys.argv[1:]
    lines = said(hale, command).splitlines()
    end = lines.index("") if "" in lines else len(lines)
    notes, added = read_more(more[0]) if more else ({}, {})
    sections = parted(lines[end:])
    for name, text in added.items():
        if name not in SECTIONS:
            sys.exit(f"{more[0]}: there is no section '{name}'")
        sections.setdefault(name, []).extend(["", *text])
    page = ['.\\" made by scripts/manpage.py from `hale help ' + command + "`", ".Dd January 1, 2026",
            f".Dt HALE-{command.upper()} 1", ".Os", ".Sh NAME", f".Nm hale-{command}",
            ".Nd " + escaped(name_line(said(hale), command)), ".Sh SYNOPSIS", ".Bd -literal", *map(escaped, lines[:end]), ".Ed"]
    for name in SECTIONS:
        text = body(sections.get(name, []), notes)
        page += [".Sh " + name, *text] if text else []
    if notes:
        sys.exit(f"{os.path.basename(more[0])}: `hale help {command}` has no {', '.join(notes)}")
    page += [".Sh SEE ALSO", ".Xr hale 1" + ("" if command == "run" else " ,")]
    page += [] if command == "run" else [".Xr hale-run 1"]
    with open(to, "w") as f:
        f.write("\n".join(page) + "\n")


main()
