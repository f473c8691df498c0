#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Recipes in packaging/: what they say of Hale is so, and the module file works in Environment Modules."""

import ast

from lib import *

PACKAGING = os.path.join(ROOT, "packaging")


def text(*path):
    with open(os.path.join(ROOT, *path)) as f:
        return f.read()


def version():
    return re.search(r"^\s+version : '([^']+)'", text("meson.build"), re.M)[1]


@test
def recipes_name_the_version_the_options_and_every_library(s):
    """Neither Spack nor EasyBuild is here: their recipes are Python, and are read as such."""
    spack = text("packaging", "spack", "package.py")
    (name,) = [os.path.basename(x) for x in glob.glob(os.path.join(PACKAGING, "easybuild", "*.eb"))]
    easy = text("packaging", "easybuild", name)
    said = {t.id: ast.literal_eval(n.value) for n in ast.parse(easy).body for t in n.targets}
    calls = [(c.func.id, ast.literal_eval(c.args[0])) for c in ast.walk(ast.parse(spack))
             if isinstance(c, ast.Call) and isinstance(c.func, ast.Name) and c.args and isinstance(c.args[0], ast.Constant)]
    expect(said["version"] == version() and name == f"hale-{version()}-GCC-{said['toolchain']['version']}.eb", name)
    expect(("version", version()) in calls and version() in text("packaging", "module", "hale"), calls)
    # spelled as either has them: meson.build asks for lz4, libzstd, hwloc, libzmq …
    others = {"libzmq": "zeromq", "libxxhash": "xxhash", "libzstd": "zstd", "liblz4": "lz4", "ncursesw": "ncurses"}
    asked = re.findall(r"^\w+ = dependency\('(\w+)'(.*)", text("meson.build"), re.M)
    in_spack = {v.split("@")[0].split()[0] for n, v in calls if n == "depends_on"}
    in_easy = {d[0].lower() for d in said["dependencies"]}
    for library, rest in asked:
        if library in ("threads", "cmocka"):
            continue
        names = {library, others.get(library, library)}
        expect(names & in_spack, library, in_spack)
        expect(names & in_easy or "required : false" in rest, library, in_easy)
    options = set(re.findall(r"^option\('(\w+)'", text("meson_options.txt"), re.M)) | {"werror"}
    for recipe in spack, easy:
        used = set(re.findall(r"-D(\w+)=", recipe))
        expect(used and used <= options, used)
    for path in said["sanity_check_paths"]["files"]:
        expect(os.path.basename(path) in os.listdir(BUILD) + ["hale.h"], path)


@test
def the_module_file_is_loaded_and_unloaded(s):
    module = "/usr/share/modules/libexec/modulecmd.tcl"
    if not os.path.exists(module):
        module = "/usr/lib/x86_64-linux-gnu/modulecmd.tcl"
    if not os.path.exists(module):
        skip("environment-modules is not installed")
    os.makedirs(s.path("prefix/bin"))
    os.symlink(HALE, s.path("prefix/bin/hale"))
    os.makedirs(s.path("modules/hale"))
    s.write(f"modules/hale/{version()}", text("packaging", "module", "hale").replace("/opt/hale", s.path("prefix")))
    r = s.run("sh", "-c", 'm() { eval "$("$0" sh "$@")"; }; m load hale && which hale && hale run -n 2 --no-mpi -- echo ran; '
              'echo "$MANPATH"; m unload hale; echo "$PATH"', module, env={"MODULEPATH": s.path("modules")})
    lines = r.out.splitlines()
    expect(r.status == 0 and lines[0] == s.path("prefix/bin/hale") and lines[1:3] == ["ran", "ran"], r)
    expect(s.path("prefix/share/man") in lines[3] and s.path("prefix") not in lines[4], r)


main()
