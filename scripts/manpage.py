#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""manpage.py HALE COMMAND FILE: the man page of a command of hale, from what its --help prints.

The lines before the first empty one are the synopsis. A line that begins with two blanks and a dash, or with a word
and two blanks, begins a row, whose text goes on in the lines that are indented further."""

import re
import subprocess
import sys


def said(hale, *words):
    return subprocess.run([hale, "help", *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def name_line(overview, command):
    m = re.search(rf"(?m)^  hale {command}\b(?:.(?!  ))*.\s{{2,}}(\S.*(?:\n {{40,}}\S.*)*)", overview)
    return re.sub(r"\s+", " ", m[1]) if m else "a command of hale"


def blocks(lines):
    """('row', head, text), ('text', lines), ('as it is', lines)"""
    paragraph = []
    i = 0
    while i < len(lines):
        if not re.match(r"  +--?[a-z]| *[a-z]+  ", lines[i]):
            paragraph.append(lines[i])
            i += 1
            continue
        if paragraph:
            yield "text", paragraph
            paragraph = []
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


def body(lines):
    out, in_list = [], False
    for kind, *what in blocks(lines):
        if kind == "row":
            if not in_list:
                out.append(".Bl -tag -width Ds")
                in_list = True
            out += [".It Li " + escaped(what[0]).replace('"', '\\(dq').replace(" ", "\\ "), *map(escaped, what[1])]
            continue
        if in_list:
            out.append(".El")
            in_list = False
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
    return [x for i, x in enumerate(out) if not (x == ".Pp" and (i == 0 or out[i - 1] == ".Pp"))]


def main():
    hale, command, to = sys.argv[1:]
    lines = said(hale, command).splitlines()
    end = lines.index("") if "" in lines else len(lines)
    synopsis = lines[:end]
    page = ['.\\" made by scripts/manpage.py from `hale help ' + command + "`", ".Dd January 1, 2026",
            f".Dt HALE-{command.upper()} 1", ".Os", ".Sh NAME", f".Nm hale-{command}",
            ".Nd " + escaped(name_line(said(hale), command)), ".Sh SYNOPSIS", ".Bd -literal", *map(escaped, synopsis),
            ".Ed", ".Sh DESCRIPTION", *body(lines[end:]), ".Sh SEE ALSO", ".Xr hale 1 ,", ".Xr hale-run 1"]
    with open(to, "w") as f:
        f.write("\n".join(page) + "\n")


main()
