# SPDX-License-Identifier: BSD-3-Clause
"""Recipes of docs/ as tests run them: the very lines that readers copy."""

from lib import *


def recipe(page, word):
    """The one block of code of docs/PAGE that has this word."""
    with open(os.path.join(ROOT, "docs", page)) as f:
        blocks = re.findall(r"^```\n(.*?)^```$", f.read(), re.M | re.S)
    found = [b for b in blocks if word in b]
    expect(len(found) == 1, f"{len(found)} blocks of {page} have '{word}'")
    return found[0]


def with_hale(s, **env):
    """An environment in which `hale` is what is tested."""
    os.makedirs(s.path("bin"), exist_ok=True)
    if not os.path.lexists(s.path("bin/hale")):
        os.symlink(HALE, s.path("bin/hale"))
    return dict(env, PATH=f"{s.path('bin')}:{os.environ['PATH']}")
