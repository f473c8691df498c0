# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of halecc share."""

from lib import *

HALECC = os.path.join(BUILD, "halecc")
HALECC_ENV = {"HALE_INCDIR": os.path.join(ROOT, "include"), "HALE_LIBDIR": BUILD}


def halecc(s, *argv, env=None, **kw):
    if not os.path.exists(HALECC):
        skip("halecc is not built: libclang-14-dev is not installed")
    return s.run(HALECC, *argv, env=dict(HALECC_ENV, **(env or {})), **kw)
