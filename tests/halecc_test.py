# SPDX-License-Identifier: BSD-3-Clause
"""halecc: the language of `#pragma hale protect`, what is made of it, and that the programs recover."""

from lib import *
from halecc_parts import HALECC, halecc

DATA = os.path.join(ROOT, "tests", "data", "halecc")


def build(s, name, text, *flags):
    """The program's path; its diagnostics are in build.err."""
    s.write(name + ".c", text)
    r = halecc(s, "-O1", "-Wall", *flags, name + ".c", "-o", name)
    expect(r.status == 0, r)
    build.err = r.err
    return s.path(name)


def refused(s, body, *words, before="", flags=()):
    """A function with this body is refused, with a sentence that has these words, the line and a caret."""
    s.write("bad.c", f"""#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
extern jmp_buf env;
void compute(const double *x, double *y, int n);
{before}
int f(double *x, double *y, int n)
{{
{body}
	return 0;
}}
""")
    r = halecc(s, "-c", "bad.c", *flags)
    expect(r.status == 1, r)
    for w in words:
        expect(w in r.err, f"'{w}' is not said", r)
    expect(re.search(r"^bad\.c:\d+:\d+: error: ", r.err, re.M) and re.search(r"^\s*\^$", r.err, re.M), r)
    expect(not os.path.exists(s.path("bad.o")), "an object was made all the same", r)


def said(s, body, *words, before=""):
    """It is compiled, with a warning that has these words."""
    s.write("odd.c", f"""#include <stdio.h>
#include <stdlib.h>
void compute(const double *x, double *y, int n);
{before}
double f(double *x, double *y, int n)
{{
	double s = 0;
{body}
	return s;
}}
""")
    r = halecc(s, "-c", "odd.c")
    expect(r.status == 0, r)
    for w in words:
        expect(w in r.err, f"'{w}' is not said", r)


# ---- what is made ----

@test
def the_figures_of_the_seed_become_this_code(s):
    for source in sorted(glob.glob(os.path.join(DATA, "*.c"))):
        name = os.path.basename(source)
        shutil.copy(source, s.path(name))
        r = halecc(s, "--show", name, env={"HALE_CC": "mpicc"})
        expect(r.status == 0, r)
        with open(source[:-2] + ".expected") as f:
            expect(r.out == f.read(), f"{name} becomes other code than {name[:-2]}.expected has", r)
        r = halecc(s, "-c", "-Wall", "-Wextra", "-Werror", name, "-o", "x.o", env={"HALE_CC": "mpicc"})
        expect(r.status == 0, r)


@test
def explain_prints_the_table_of_the_seed(s):
    shutil.copy(os.path.join(DATA, "chain.c"), s.path("chain.c"))
    r = halecc(s, "--explain", "chain.c")
    expect(r.status == 0, r)
    rows = [re.split(r"\s{2,}", line) for line in r.out.splitlines()[2:]]
    expect([(x[0], x[2], x[3].split("(")[0], x[4]) for x in rows] == [
        ("0", "A", "Checker", 'Correct(A), Load(A, n, "A")'), ("0", "B", "Checker", 'Correct(B), Load(B, n, "B")'),
        ("1", "C", "Checker", "Correct(C), region 0"), ("1", "D", "Checker", 'Correct(D), Load(D, n, "D")'),
        ("2", "E", "Checker", "Correct(E), region 1")], r)


def without_pragmas(path):
    with open(path) as f:
        return re.sub(r"#pragma (hale )?protect(\\\n|[^\n])*\n", "", f.read())


@test
def suggest_finds_the_variables_that_were_chosen_by_hand(s):
    sources = sorted(glob.glob(os.path.join(DATA, "*.c"))) + [
        os.path.join(ROOT, "tests/programs/protect_chain.c"), os.path.join(ROOT, "bench/protect/chain.c")]
    for source in sources:
        r = halecc(s, "--explain", source, env={"HALE_CC": "mpicc"})
        rows = [re.split(r"\s{2,}", line) for line in r.out.splitlines()[2:]]
        chosen = {x[2] for x in rows if len(x) > 3}
        s.write("bare.c", without_pragmas(source))
        r = halecc(s, "--suggest", "bare.c", env={"HALE_CC": "mpicc"})
        found = set(re.findall(r"^(\w+) .*%$", r.out, re.M))
        expect(r.status == 0 and chosen and chosen <= found, source, chosen, found, r)
        pragmas = "".join(re.findall(r"^#pragma protect .*$", r.out, re.M))
        expect(all(re.search(rf"\b{v}\b", pragmas) for v in chosen), source, r)


@test
def what_suggest_prints_can_be_compiled(s):
    bare = without_pragmas(os.path.join(ROOT, "tests/programs/protect_chain.c"))
    s.write("bare.c", bare)
    lines = bare.splitlines(keepends=True)
    for line, pragma in reversed(re.findall(r"^bare\.c:(\d+):\n(#pragma .*)$", halecc(s, "--suggest", "bare.c").out, re.M)):
        lines.insert(int(line) - 1, pragma + "\n")
    s.write("with.c", "".join(lines))
    r = halecc(s, "-O2", "with.c", "-o", "with")
    expect(r.status == 0, r)
    expect(s.run("gcc", "-O2", "bare.c", "-o", "bare").status == 0)
    want = s.run(s.path("bare"), "32", "E")
    for var in "ABCDE":
        r = s.run(s.path("with"), "32", "F", env={"HALE_PROTECT_INJECT": f"var={var},seed={SEED}",
                                                  "HALE_PROTECT": "report=report.json"})
        expect(r.status == 0 and r.out == want.out, var, r)
        expect(sum(v["detected"] for v in s.report()["variables"]) == 1, var, s.report())


# ---- it recovers ----

def chain(s, *flags):
    r = halecc(s, "-O2", *flags, os.path.join(ROOT, "tests/programs/protect_chain.c"), "-o", "chain")
    expect(r.status == 0, r)
    return s.path("chain")


def regions(s, name="report.json"):
    return {r["name"]: r for r in s.report(name)["regions"]}


@test
def a_plain_compiler_ignores_the_pragmas(s):
    exe = chain(s)
    expect(s.run("gcc", "-O2", os.path.join(ROOT, "tests/programs/protect_chain.c"), "-o", "plain").status == 0)
    a, b = s.run(exe, "48", "a"), s.run(s.path("plain"), "48", "b")
    expect(a.status == 0 and b.status == 0 and a.out == b.out and a.err == "", a, b)


@test
def flipped_bits_in_any_variable_are_corrected_or_computed_again(s):
    exe = chain(s, "-fopenmp")
    right = s.run(exe, "48", "right")
    with open(s.path("right"), "rb") as f:
        want = f.read()
    for var in "ABCDE":
        for bits in (1, 3, 40):
            seed = SEED * 100 + bits
            r = s.run(exe, "48", "out", env={
                "HALE_PROTECT": "report=report.json",
                "HALE_PROTECT_INJECT": f"var={var},bits={bits},seed={seed}"})
            with open(s.path("out"), "rb") as f:
                expect(r.status == 0 and f.read() == want and r.out == right.out, f"{var} {bits} {seed}", r)
            report = s.report()
            seen = {v["name"]: v for v in report["variables"]}
            expect(seen[var]["detected"] >= 1, report)
            expect(seen[var]["corrected"] + seen[var]["recomputed"] >= 1, report)
            expect(len(report["injected"]) == bits and all(i["var"] == var for i in report["injected"]), report)
            expect(all(r["unrecoverable"] == 0 and r["lvf"] > 0 for r in report["regions"]), report)


@test
def what_cannot_be_corrected_is_computed_again_by_the_region_that_wrote_it(s):
    exe = build(s, "again", r"""
#include <stdio.h>
static double x[4], y[4], z[4];
int main(void)
{
	int runs = 0;
	(void)runs;
#pragma hale protect Continue
	for (int i = 0; i < 4; i++) x[i] = i + 1;
#pragma hale protect Check(hash(x)) Continue
	for (int i = 0; i < 4; i++) y[i] = 2 * x[i];
#pragma hale protect Check(hash(y))
	for (int i = 0; i < 4; i++) z[i] = 3 * y[i];
	printf("%g %g\n", z[0], z[3]);
	return 0;
}
""")
    for var, region in (("x", "region 1"), ("y", "region 2")):
        r = s.run(exe, env={"HALE_PROTECT": "report=report.json", "HALE_LOG": "info",
                            "HALE_PROTECT_INJECT": f"var={var},seed={SEED}"})
        expect(r.status == 0 and r.out == "6 24\n" and "runs again" in r.err, r)
        expect(regions(s)[region]["recomputed"] == 1, s.report())


@test
def what_nothing_can_recover_ends_with_72_and_a_sentence(s):
    exe = build(s, "lost", r"""
#include <stdio.h>
int main(void)
{
	double x[8] = {1}, s = 0;
#pragma hale protect Check(hash(x))
	for (int i = 0; i < 8; i++) s += x[i];
	printf("%g\n", s);
	return 0;
}
""")
    expect(s.run(exe).out == "1\n")
    r = s.run(exe, env={"HALE_PROTECT_INJECT": f"var=x,seed={SEED}", "HALE_PROTECT": "report=report.json"})
    expect(r.status == 72 and r.out == "", r)
    for word in ("region 0", "lost.c:6", "'x'", "tried"):
        expect(word in r.err, r)
    expect(regions(s)["region 0"]["unrecoverable"] == 1, s.report())


@test
def joins_and_splits_recover(s):
    exe = build(s, "both", r"""
#include <stdio.h>
#include <stdlib.h>
static void fill(double *x, int k) { for (int i = 0; i < 100; i++) x[i] = i * k; }
static double total(const double *x) { double s = 0; for (int i = 0; i < 100; i++) s += x[i]; return s; }
int main(int argc, char **argv)
{
	double a[100], b[100], s = 0, t = 0;
	int how = atoi(argv[1]);
#pragma hale protect Continue
	fill(a, 1);
#pragma hale protect Continue
	fill(b, 2);
#pragma hale protect Check(hash(a), hash(b))
	s = total(a) + total(b);
#pragma hale protect Continue
	fill(a, how);
	if (how == 7) {
#pragma hale protect Check(hash(a))
		t = total(a);
	} else {
#pragma hale protect Check(hash(a))
		t = -total(a);
	}
	printf("%g %g\n", s, t);
	return 0;
}
""")
    for how, want in (("7", "14850 34650\n"), ("1", "14850 -4950\n")):
        for region, var in (("region 2", "a"), ("region 2", "b"), ("region 4", "a"), ("region 5", "a")):
            r = s.run(exe, how, env={"HALE_PROTECT_INJECT": f"var={var},region={region},seed={SEED}",
                                     "HALE_PROTECT": "report=report.json"})
            expect(r.status == 0 and r.out == want, region, r)
            if region in regions(s):
                expect(regions(s)[region]["recomputed"] == 1, s.report())


@test
def a_region_may_stand_in_another_one_in_a_loop_and_in_a_recursive_function(s):
    exe = build(s, "nested", r"""
#include <stdio.h>
static void add(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] + 1; }
static double deep(int level)
{
	double x[16], y[16], s = 0;
	for (int i = 0; i < 16; i++) x[i] = i + level;
#pragma hale protect Check(sum(x)) Recover(correct(x))
	{
		if (level > 0)
			s = deep(level - 1);
#pragma hale protect Continue
		add(x, y, 16);
#pragma hale protect Check(sum(y[0:16]))
		for (int i = 0; i < 16; i++) s += y[i];
	}
	return s;
}
int main(void)
{
	double s = 0;
	for (int step = 0; step < 3; step++) s += deep(4);
	printf("%g\n", s);
	return 0;
}
""")
    want = s.run(exe).out
    for var in "xy":
        for run in (1, 4, 11):
            r = s.run(exe, env={"HALE_PROTECT_INJECT": f"var={var},run={run},seed={SEED}",
                                "HALE_PROTECT": "report=report.json"})
            expect(r.status == 0 and r.out == want, var, run, r)
            expect(sum(g["detected"] for g in s.report()["regions"]) == 1, s.report())


@test
def data_that_a_region_updates_in_place_come_back_from_their_copy(s):
    exe = build(s, "inplace", r"""
#include <stdio.h>
static void relax(double *u, int n) { for (int i = 0; i < n; i++) u[i] += 1; }
static int sane(const double *u, int n)
{
	static int calls;
	(void)u, (void)n;
	return ++calls > 2; /* the first two runs count as wrong */
}
int main(void)
{
	double u[32] = {0}, s = 0;
	int steps = 0;
#pragma hale protect CR(u) Check(sane(u, 32))
	{
		relax(u, 32);
		steps++;
	}
	for (int i = 0; i < 32; i++) s += u[i];
	printf("%g %d\n", s, steps);
	return 0;
}
""")
    r = s.run(exe, env={"HALE_PROTECT": f"report=report.json,ckpt={s.tmp}"})
    expect(r.status == 0 and r.out == "32 1\n", r)
    expect(regions(s)["region 0"]["recomputed"] == 2, s.report())
    r = s.run(exe, env={"HALE_PROTECT": "ckpt=/nowhere"})
    expect(r.status == 72 and "/nowhere" in r.err, r)


@test
def a_product_is_judged_while_it_is_computed(s):
    exe = build(s, "product", r"""
#include <stdio.h>
#include <stdlib.h>
static int strikes;
static void mmult(const double *a, const double *b, double *c, int m, int n, int k)
{
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			c[i * n + j] = 0;
			for (int l = 0; l < k; l++) c[i * n + j] += a[i * k + l] * b[l * n + j];
		}
	if (getenv("STRIKE")) { c[17] += 1e-9; unsetenv("STRIKE"); }
}
int main(void)
{
	enum { M = 20, N = 30, K = 10 };
	double A[M * K], B[K * N], C[M * N], s = 0;
	(void)strikes;
	for (int i = 0; i < M * K; i++) A[i] = i % 7 - 3;
	for (int i = 0; i < K * N; i++) B[i] = i % 5 - 2;
#pragma hale protect Check(sum(A), sum(B), product(C[0:M][0:N], A, B, K)) Recover(correct(A), correct(B)) Continue
	mmult(A, B, C, M, N, K);
#pragma hale protect Check(sum(C[0:M*N])) Recover(correct(C))
	for (int i = 0; i < M * N; i++) s += C[i] * i;
	printf("%.17g\n", s);
	return 0;
}
""")
    want = s.run(exe).out
    r = s.run(exe, env={"STRIKE": "1", "HALE_PROTECT": "report=report.json"})
    expect(r.status == 0 and r.out == want, r)
    expect(regions(s)["region 0"]["recomputed"] == 1, s.report())


@test
def what_is_loaded_wrongly_is_loaded_until_it_comes_out_the_same(s):
    build(s, "confirm", r"""
#include <stdio.h>
static int loads;
static void load(double *x, int n, int wrong)
{
	for (int i = 0; i < n; i++) x[i] = i;
	x[n / 2] += loads++ == wrong;
}
int main(int argc, char **argv)
{
	static double x[512], early[512];
	double s = 0;
	int n = 512;
	load(early, n, -1);
	s = early[1];
	load(x, n, argc - 1);
#pragma protect Check(sum(x[0:n])) Recover(correct(x), load(x, n, -1)) Confirm(load(x, n, argc - 1))
	{
		s = 0;
		for (int i = 0; i < n; i++) s += x[i];
	}
	printf("%g %d\n", s, loads);
	return 0;
}
""")
    # the argument is the load that comes out wrong: 0 is the one of `early`
    for wrong, loads in ((0, 3), (1, 4), (2, 5), (3, 3)):
        r = s.run("./confirm", *"x" * wrong)
        expect(r.status == 0 and r.out == f"{511 * 512 // 2} {loads}\n", wrong, r)
    refused(s, """#pragma protect Check(finite(x[0:n])) Confirm(compute(x, y, n))
	compute(x, y, n);""", "Confirm names a call", "sum")
    refused(s, """#pragma protect Continue
	compute(x, y, n);
#pragma protect Check(sum(y[0:n])) Confirm(compute(y, x, n))
	compute(y, x, n);""", "is written by a region", "Redundancy")


@test
def redundancy_finds_what_strikes_while_a_region_writes(s):
    text = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stdlib.h>
static void compute(const double *x, double *y, int n)
{
	for (int i = 0; i < n; i++) y[i] = 2 * x[i];
	char id[24];
	snprintf(id, sizeof id, "%d", (int)getpid());
	if (getenv("STRIKES") && !strcmp(getenv("STRIKES"), id)) { y[3] = 77; unsetenv("STRIKES"); }
}
int main(int argc, char **argv)
{
	double x[64], y[64], s = 0;
	for (int i = 0; i < 64; i++) x[i] = i;
	char id[24];
	snprintf(id, sizeof id, "%d", (int)getpid());
	if (argc > 1) setenv(argv[1], id, 1);
#pragma hale protect Redundancy(DEGREE) Check(sum(x)) Continue
	compute(x, y, 64);
#pragma hale protect Check(sum(y))
	for (int i = 0; i < 64; i++) s += y[i];
	printf("%g\n", s);
	return 0;
}
"""
    for degree in "23":
        exe = build(s, "red" + degree, text.replace("DEGREE", degree))
        expect(s.run(exe).out == "4032\n")
        r = s.run(exe, "STRIKES", env={"HALE_PROTECT": "report=report.json"})
        expect(r.status == 0 and r.out == "4032\n", r)
        expect(regions(s)["region 0"]["detected"] == 1, s.report())


@test
def what_is_written_by_other_names_and_in_functions_stays_right(s):
    """A right program is never made wrong, neither without an error nor by its recovery."""
    fill = "for (int i = 0; i < 8; i++) x[i] = i;"
    check = "#pragma hale protect Check(sum(x)) Recover(correct(x))\n"
    total = "for (int i = 0; i < 8; i++) s += x[i];"
    cases = {  # what stands in the file; in main; the output
        "alias": ("", f"double *q = x; {fill} s = 1; q[0] = 100;\n{check}{total}", "129 0\n"),
        "global": ("static double x[8]; static void touch(void) { x[0] = 100; }",
                   f"{fill} touch();\n{check}{total}", "128 0\n"),
        "unseen": ("extern double x[8]; void touch(void);", f"{fill} touch();\n{check}{total}", "128 0\n"),
        "part": ("static void set(double *x) { x[0] = 100; } static void some(double *x) { set(x + 1); }",
                 f"{fill} some(x);\n{check}{total}", "127 0\n"),
        "initializer": ("static int set(double *x) { x[0] = 100; return 3; }",
                        f"{fill} int k = set(x);\n{check}{total} n = k;", "128 3\n"),
        "extent": ("static void fit(int *size, double *x) { size[0] = 8; for (int i = 0; i < 8; i++) x[i] = i; }",
                   "int size[1] = {0};\n#pragma hale protect Continue\nfit(size, x);\n"
                   "#pragma hale protect Check(sum(x[0:size[0]])) Recover(correct(x))\n" + total, "28 0\n"),
        "scalar": ("static double step(const double *x, double *t) { double s = x[7] + *t; *t += 1; return s; }",
                   f"double t = 0; {fill}\n{check}s = step(x, &t);\nn = t;", "7 1\n"),
        "counter": ("static int calls; static double step(const double *x) { calls++; return x[7]; }",
                    f"{fill}\n{check}s = step(x);\nn = calls;", "7 1\n"),
        "updated": ("static void relax(const double *x, double *u) { for (int i = 0; i < 8; i++) u[i] = u[i] + x[i]; }",
                    f"double u[8] = {{0}}; {fill}\n{check.replace('protect', 'protect CR(u)')}relax(x, u);\ns = u[7];",
                    "7 0\n"),
    }
    for name, (before, body, want) in cases.items():
        own = "" if "x[8]" in before else "double x[8];"
        s.write(name + ".c", f"#include <stdio.h>\n{before}\nint main(void) {{ {own} double s = 0; int n = 0;\n"
                f'{body}\nprintf("%g %d\\n", s, n); return 0; }}\n')
        s.write("unseen_more.c", "double x[8]; void touch(void) { x[0] = 100; }\n")
        more = []
        if name == "unseen":
            expect(s.run("gcc", "-c", "unseen_more.c").status == 0)
            more = ["unseen_more.o"]
        r = halecc(s, name + ".c", *more, "-o", name)
        expect(r.status == 0 and "warning" not in r.err, r)
        for bits in (0, 1, 3):
            env = {"HALE_PROTECT": "report=report.json"}
            if bits:
                env["HALE_PROTECT_INJECT"] = f"var=x,bits={bits},seed={SEED}"
            r = s.run(s.path(name), env=env)
            expect(r.status == 0 and r.out == want, name, bits, r)
            expect(sum(v["detected"] for v in s.report()["variables"]) == (bits > 0), name, s.report())


@test
def functions_of_other_files_are_looked_into(s):
    s.write("relax.c", "void relax(const double *x, double *u) { for (int i = 0; i < 8; i++) u[i] += x[i]; }\n"
            "double last(const double *x) { static double before; before += x[7]; return before; }\n")
    text = """void relax(const double *x, double *u); double last(const double *x);
int main(void) {
	double x[8] = {1}, u[8] = {0}, s = 0;
	(void)s;
#pragma hale protect Check(sum(x)) Recover(correct(x))
	BODY;
	return 0;
}
"""
    s.write("a.c", text.replace("BODY", "relax(x, u)"))
    r = halecc(s, "a.c", "relax.c", "-o", "a")
    expect(r.status == 0 and "a.c:6:11: warning: 'u' is updated in place" in r.err, r)
    s.write("b.c", text.replace("BODY", "s = last(x)"))
    r = halecc(s, "b.c", "relax.c", "-o", "b")
    expect(r.status == 1 and "changes 'before'" in r.err and "b.c:6:" in r.err, r)


@test
def a_region_that_a_later_one_sends_back_starts_from_what_was_before_its_first_run(s):
    exe = build(s, "back", r'''
#include <stdio.h>
static double x[64], y[64], z[64];
static void relax(double *u, const double *v) { for (int i = 0; i < 64; i++) u[i] = u[i] * 0.5 + v[i]; }
int main(void)
{
	int first = 0, second = 0, between = 0;
	double s = 0;
	for (int i = 0; i < 64; i++) x[i] = i, z[i] = 1;
#pragma protect CR(x) Continue
	{ first++; relax(x, z); }
	between++;
#pragma protect Check(hash(x)) CR(z) Continue
	{ second += first; relax(z, x); }
	between += 10;
#pragma protect Check(hash(z)) Continue
	for (int i = 0; i < 64; i++) y[i] = z[i];
#pragma protect Check(hash(y))
	{ s = 0; for (int i = 0; i < 64; i++) s += y[i]; }
	printf("%d %d %d %.17g\n", first, second, between, s);
	return 0;
}
''')
    want = s.run(exe).out
    expect(want.startswith("1 1 11 "), want)
    for order in ("var=x", "var=z", "var=y", "var=y;var=x", "var=z;var=y", "var=y;var=y,run=2;var=x,run=2"):
        r = s.run(exe, env={"HALE_PROTECT": "report=report.json", "HALE_PROTECT_INJECT": order})
        expect(r.status == 0 and r.out == want, order, r)
        expect(sum(g["recomputed"] for g in s.report()["regions"]) >= order.count("var") - 1, order, s.report())
    expect("warning" not in build.err, build.err)
    chain = "#pragma protect Continue\n\tcompute(x, y, n);\n%s\n#pragma protect Check(sum(y[0:n]))\n\tcompute(y, x, n);"
    said(s, chain % '\tprintf("x");', "between two regions", "printf")
    said(s, chain % "\tx[2] += 1;", "'x' is updated in place", "Make it a region")
    refused(s, chain % "\tn = getchar();", "between two regions", "getchar")
    refused(s, chain % "\tfree(x);", "between two regions", "free")


@test
def what_has_read_a_variable_before_its_check_mended_it_runs_again(s):
    code = r'''
#include <stdio.h>
#include <unistd.h>
static double v[64], a[64], b[64], c[64];
int main(void)
{
	double s = 0, t = 0;
	START
	for (int i = 0; i < 64; i++) v[i] = i;
#pragma protect Continue
	{ usleep(30000); for (int i = 0; i < 64; i++) a[i] = 2 * v[i]; }
	t = v[5];
#pragma protect Continue
	for (int i = 0; i < 64; i++) c[i] = 3 * a[i];
#pragma protect Check(sum(v)) RECOVER Continue
	for (int i = 0; i < 64; i++) b[i] = 3 * v[i];
#pragma protect Check(hash(a), hash(b), hash(c))
	{ s = 0; for (int i = 0; i < 64; i++) s += a[i] + b[i] + c[i] + t; }
	printf("%.17g\n", s);
	return 0;
}
'''
    for start, recover in (("", "Recover(correct(v))"), ("#pragma protect Continue", "Recover(correct(v))"),
                           ("#pragma protect Continue", "")):
        exe = build(s, "readers", code.replace("START", start).replace("RECOVER", recover))
        for seed in range(8):
            r = s.run(exe, env={"HALE_PROTECT": "report=report.json",
                                "HALE_PROTECT_INJECT": f"times=0.01,seed={SEED * 10 + seed}"})
            expect(r.status == 0 and r.out == f"{11 * 63 * 32 + 64 * 5}\n", start, recover, seed, r)


@test
def what_macros_and_functions_of_other_files_write_is_seen(s):
    s.write("fill.c", '''struct pair { double r, i; };
/* the text of this file is longer than that of the other one, so that a place in it is none there */
void fill(struct pair *x, const double *y) { for (int k = 0; k < 8; k++) { x[k].r = y[k]; x[k].i = -y[k]; } }
''')
    s.write("macros.c", '''#include <stdio.h>
#define SET(m, v) do { (m) = (v); } while (0)
#define PUT(x, i, v) x[i] = v
#define LESS(a, b) ((a) < (b) ? (a) : (b))
#define FILL(x, y) fill(x, y)
struct pair { double r, i; };
void fill(struct pair *x, const double *y);
int main(void) {
	double a[8], b[8], c[8], s = 0;
	struct pair d[8];
	for (int i = 0; i < 8; i++) a[i] = i;
#pragma protect Check(sum(a)) Recover(correct(a)) Continue
	for (int i = 0; i < 8; i++) { SET(b[i], LESS(a[i], a[7])); PUT(c, i, a[i]); }
#pragma protect Check(sum(b)) Continue
	FILL(d, b);
#pragma protect Check(sum(d), sum(c))
	{
		s = 0;
		for (int i = 0; i < 8; i++) s += d[i].r - d[i].i + c[i];
	}
	printf("%g\\n", s);
	return 0;
}
''')
    r = halecc(s, "macros.c", "fill.c", "-o", "macros")
    expect(r.status == 0 and "warning" not in r.err, r)
    for var in ("none", "a", "b", "c", "d"):
        r = s.run(s.path("macros"), env={"HALE_PROTECT": "report=report.json",
                                         "HALE_PROTECT_INJECT": f"var={var},seed={SEED}"})
        expect(r.status == 0 and r.out == "84\n", var, r)
        seen = {v["name"]: v["recomputed"] + v["corrected"] for v in s.report()["variables"]}
        expect(seen == {v: int(v == var) for v in "abcd"}, var, s.report())


@test
def the_variable_of_a_method_may_stand_behind_other_arguments(s):
    exe = build(s, "behind", r'''
#include <stdio.h>
static void fill(int n, double *x) { for (int i = 0; i < n; i++) x[i] = i; }
int main(void)
{
	double x[8], s = 0;
	fill(8, x);
#pragma protect Check(hash(x)) Recover(fill(8, x)) Confirm(fill(8, x))
	{
		s = 0;
		for (int i = 0; i < 8; i++) s += x[i];
	}
	printf("%g\n", s);
	return 0;
}
''')
    r = s.run(exe, env={"HALE_PROTECT": "report=report.json", "HALE_PROTECT_INJECT": f"var=x,seed={SEED}"})
    expect(r.status == 0 and r.out == "28\n" and s.report()["variables"][0]["corrected"] == 1, r)
    refused(s, "#pragma protect Check(sum(x[0:n])) Recover(compute(y, y, n))\n\tcompute(x, y, n);",
            "no Check of it")


@test
def threads_may_run_a_redundant_region_at_the_same_time(s):
    exe = build(s, "threads", r"""
#include <pthread.h>
#include <stdio.h>
static double out[4];
static void work(const double *x, double *y) { for (int i = 0; i < 512; i++) y[i] = x[i] * 2; }
static void *go(void *p)
{
	double x[512], y[512], s = 0;
	for (int i = 0; i < 512; i++) x[i] = i;
	for (int turn = 0; turn < 100; turn++) {
#pragma hale protect Redundancy(2) Check(sum(x)) Recover(correct(x)) Continue
		work(x, y);
#pragma hale protect Check(sum(y)) Recover(correct(y))
		for (int i = 0; i < 512; i++) s += y[i];
	}
	*(double *)p = s;
	return NULL;
}
int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, go, &out[i]);
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	printf("%g %g %g %g\n", out[0], out[1], out[2], out[3]);
	return 0;
}
""", "-pthread")
    for _ in range(3):
        r = s.run(exe)
        expect(r.status == 0 and len(set(r.out.split())) == 1, r)


# ---- the cases of bench/protect ----

@test
def a_chain_of_tasks_recovers_block_by_block(s):
    import array
    import random
    source = os.path.join(ROOT, "bench", "protect", "chain_tasks.c")
    rng = random.Random(SEED)
    for name in "ABD":
        with open(s.path(name), "wb") as f:
            array.array("d", [rng.random() - 0.5 for _ in range(512 * 512)]).tofile(f)
    expect(s.run("gcc", "-O2", "-fopenmp", source, "-o", "plain", "-lopenblas").status == 0)
    env = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"}
    expect(s.run(s.path("plain"), "512", ".", env=env).status == 0)
    with open(s.path("E"), "rb") as f:
        want = f.read()
    for flags, orders in (([], [f"var={v},bits={b},when=check" for v in "ABCDE" for b in (1, 60)]),
                          (["-DREDUNDANT"], ["times=0.01"])):
        r = halecc(s, "-O2", "-fopenmp", "-DPROTECT", *flags, source, "-o", "tasks", "-lopenblas")
        expect(r.status == 0, r)
        for order in orders:
            r = s.run(s.path("tasks"), "512", ".", env={
                **env, "HALE_PROTECT": "report=report.json", "HALE_PROTECT_INJECT": f"{order},seed={SEED}"})
            with open(s.path("E"), "rb") as f:
                expect(r.status == 0 and f.read() == want, flags, order, r)
            seen = [v["corrected"] + v["recomputed"] for v in s.report()["variables"]]
            expect(flags or sum(seen) == 1, order, s.report())


@test
def tf_idf_gives_the_same_whatever_strikes_its_ranks(s):
    import random
    rng = random.Random(SEED)
    os.mkdir(s.path("texts"))
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 7))) for _ in range(3000)]
    for i in range(20):
        s.write(f"texts/{i:05d}.txt", " ".join(rng.choices(words, k=2000)))
    r = halecc(s, "-O2", os.path.join(ROOT, "bench/protect/tfidf.c"), "-o", "tfidf", "-lm",
               env={"HALE_CC": "mpicc.openmpi"})
    expect(r.status == 0, r)
    s.write("one.sh", "#!/bin/sh\nHALE_PROTECT=report=report.$OMPI_COMM_WORLD_RANK exec ./tfidf texts 20\n")
    os.chmod(s.path("one.sh"), 0o755)
    want = sorted(s.hale_run(4, s.path("one.sh")).out.splitlines())
    expect(len(want) == 2 and want[1].startswith("mean "), want)
    for order in ("var=names", "var=docs,region=region 2", "var=terms,bits=60,region=region 2", "var=dfs,region=region 2",
                  "var=terms,when=check,region=region 2", "var=docs,bits=40,when=check,region=region 2"):
        r = s.hale_run(4, s.path("one.sh"), env={"HALE_PROTECT_INJECT": f"{order},seed={SEED}"})
        expect(r.status == 0 and sorted(r.out.splitlines()) == want, order, r)
        for rank in range(4):
            seen = s.report(f"report.{rank}")
            expect(seen["injected"] and sum(v["detected"] for v in seen["variables"]) >= 1, order, seen)


# ---- it works where cc does ----

@test
def several_files_objects_and_dependencies_come_out_as_with_cc(s):
    os.mkdir(s.path("sub"))
    s.write("sub/part.h", "int part(void);\n#define SEVEN 7\n")
    s.write("sub/part.c", '''#include "part.h"
int part(void) {
	int x[4] = {1, 2, 3, 4}, s = 0;
#pragma hale protect Check(hash(x))
	for (int i = 0; i < 4; i++) s += x[i] * SEVEN;
	return s;
}
''')
    s.write("main.c", '#include <stdio.h>\n#include "sub/part.h"\nint main(void) { printf("%d\\n", part()); return 0; }\n')
    r = halecc(s, "main.c", "sub/part.c", "-o", "whole")
    expect(r.status == 0 and s.run(s.path("whole")).out == "70\n", r)
    r = halecc(s, "-c", "main.c", "sub/part.c")
    expect(r.status == 0 and os.path.exists(s.path("main.o")) and os.path.exists(s.path("part.o")), r)
    r = halecc(s, "main.o", "part.o", "-o", "linked")
    expect(r.status == 0 and s.run(s.path("linked")).out == "70\n", r)
    r = halecc(s, "-MMD", "-MP", "-c", "sub/part.c", "-o", "p.o")
    expect(r.status == 0 and re.match(r"p\.o: .*sub/part\.c.*sub/part\.h", s.read("p.d").replace("\\\n", "")), r)
    os.mkdir(s.path("dir.d"))
    r = halecc(s, "-MMD", "-c", "sub/part.c", "-o", "dir.d/p")
    expect(r.status == 0 and "part.h" in s.read("dir.d/p.d"), "a folder's dot is none of the file's", r)
    r = halecc(s, "-MM", "sub/part.c")
    expect(r.status == 0 and "sub/part.h" in r.out, r)
    r = halecc(s, "-E", "sub/part.c")
    expect(r.status == 0 and "hale_check" in r.out and "* 7" in r.out, r)
    r = halecc(s, "-S", "sub/part.c")
    expect(r.status == 0 and os.path.exists(s.path("part.s")), r)
    r = halecc(s, "--version")
    expect(r.status == 0 and r.out == s.run("cc", "--version").out, r)


@test
def errors_of_the_compiler_name_the_lines_of_the_user(s):
    s.write("wrong.c", """int f(int *x)
{
	int s = 0;
#pragma hale protect \\
	Check(hash(x[0:4]))
	s = x[0];
	int unused;
	return t;
}
""")
    r = halecc(s, "-c", "wrong.c")
    expect(r.status != 0 and "wrong.c:8:" in r.err, r)
    s.write("warn.c", s.read("wrong.c").replace("return t", "return s"))
    r = halecc(s, "-c", "-Wall", "warn.c")
    expect(r.status == 0 and "warn.c:7:" in r.err and "unused" in r.err, r)


@test
def it_finds_its_files_without_having_been_installed(s):
    if not os.path.exists(HALECC):
        skip("halecc is not built")
    s.write("x.c", "#include <stdio.h>\nint main(void)\n{\n\tint x[2] = {3, 4}, s = 0;\n"
            "#pragma hale protect Check(sum(x)) Recover(correct(x))\n\ts = x[0] + x[1];\n"
            '\tprintf("%d\\n", s);\n\treturn 0;\n}\n')
    r = s.run(HALECC, "x.c", "-o", "x")
    expect(r.status == 0 and s.run(s.path("x")).out == "7\n", r)


@test
def make_cmake_and_ccache_take_it_for_a_compiler(s):
    if not os.path.exists(HALECC):
        skip("halecc is not built")
    s.write("main.c", "#include <stdio.h>\nint main(void)\n{\n\tint x[2] = {3, 4}, s = 0;\n"
            "#pragma hale protect Check(sum(x)) Recover(correct(x))\n\ts = x[0] + x[1];\n"
            '\tprintf("%d\\n", s);\n\treturn 0;\n}\n')
    env = {"HALE_INCDIR": os.path.join(ROOT, "include"), "HALE_LIBDIR": BUILD}
    r = s.run("make", "-r", f"CC={HALECC}", "main", "-f", "/dev/null", "--eval", "main: main.c; $(CC) -o $@ $<", env=env)
    expect(r.status == 0 and s.run(s.path("main")).out == "7\n", r)
    if shutil.which("ccache"):
        cache = dict(env, CCACHE_DIR=s.path("cache"), CCACHE_NODIRECT="")
        for turn in range(2):
            r = s.run("ccache", HALECC, "-c", "main.c", "-o", "c.o", env=cache)
            expect(r.status == 0, r)
        r = s.run("nm", "c.o")
        expect("hale_check" in r.out, "ccache gave an object without checks", r)
    if shutil.which("cmake"):
        s.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(q main.c)\n")
        r = s.run("cmake", "-B", "b", f"-DCMAKE_C_COMPILER={HALECC}", env=env)
        expect(r.status == 0, r)
        r = s.run("cmake", "--build", "b", env=env)
        expect(r.status == 0 and s.run(s.path("b", "q")).out == "7\n", r)


@test
def cxx_files_that_keep_to_c_work_too(s):
    s.write("plus.cc", """#include <cstdio>
namespace n {
static double total(const double *x, int n)
{
	double s = 0;
#pragma hale protect Check(sum(x[0:n]), finite(x[0:n])) Recover(correct(x))
	for (int i = 0; i < n; i++) s += x[i];
	return s;
}
}
int main() { double x[3] = {1, 2, 3}; std::printf("%g\\n", n::total(x, 3)); }
""")
    r = halecc(s, "-O1", "-Wall", "-Wextra", "plus.cc", "-o", "plus", env={"HALE_CC": "g++"})
    expect(r.status == 0, r)
    r = s.run(s.path("plus"), env={"HALE_PROTECT_INJECT": f"var=x,seed={SEED}"})
    expect(r.status == 0 and r.out == "6\n", r)
    for what, word in (("if (x[0] > 1) throw 1;", "throw leaves"), ("thrown(x);", "throw leaves"), ("delete[] y;", "delete is done")):
        s.write("bad.cpp", "static void thrown(const double *x) { if (x[0] > 1) throw 1; }\n"
                "void f(double *x, double *y)\n{\n\ty[0] = 1;\n#pragma hale protect Check(sum(x[0:3]))\n\t{ " + what + " y = x; }\n"
                "\tif (y != x) thrown(y);\n}\n")
        r = halecc(s, "-c", "bad.cpp")
        expect(r.status == 1 and word in r.err, what, r)


@test
def verdicts_are_agreed_by_all_ranks(s):
    s.write("agree.c", r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int x[8], sum[8], rank, runs = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 8; i++) x[i] = i * (rank + 1);
#pragma hale protect CR Check(hash(x)) Comm
	MPI_Allreduce(x, sum, 8, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("%d %d\n", rank, sum[7]);
	MPI_Finalize();
	return 0;
}
""")
    r = halecc(s, "-O1", "agree.c", "-o", "agree", env={"HALE_CC": "mpicc.openmpi"})
    expect(r.status == 0, r)
    s.write("one.sh", f"#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 1 ] && export HALE_PROTECT_INJECT=var=x,seed={SEED}\n"
            "HALE_PROTECT=report=report.$OMPI_COMM_WORLD_RANK exec ./agree\n")
    os.chmod(s.path("one.sh"), 0o755)
    r = s.hale_run(3, s.path("one.sh"))
    expect(r.status == 0 and sorted(r.out.split("\n"))[1:] == ["0 42", "1 42", "2 42"], r)
    seen = [s.report(f"report.{i}")["regions"][0] for i in range(3)]
    expect([g["detected"] for g in seen] == [0, 1, 0], seen)
    expect(all(g["checks"] > 1 for g in seen), "a rank did not run the region again", seen)


# ---- what is refused ----

@test
def wrong_words_are_refused_with_their_place(s):
    ok = "\tcompute(x, y, n);"
    refused(s, f"#pragma hale protect Chek(sum(x[0:n]))\n{ok}", "'Chek' is unknown")
    refused(s, f"#pragma hale protect Check(smu(x[0:n]))\n{ok}", "'smu' is no function here")
    refused(s, f"#pragma hale protect Check(sum(x))\n{ok}", "'x' is a pointer", "x[0:n]")
    refused(s, f"#pragma hale protect Check(sum(q[0:n]))\n{ok}", "no variable 'q'")
    refused(s, f"#pragma hale protect Check(sum(x[0:0]))\n{ok}", "is empty")
    refused(s, f"\tdouble z[4];\n#pragma hale protect Check(sum(z[0:5]))\n{ok}", "outside of 'z'", "4 elements")
    refused(s, f"#pragma hale protect Check(sum(x[0:n])\n{ok}", "has no ')'")
    refused(s, f"#pragma hale protect Redundancy(4)\n{ok}", "2 or 3")
    refused(s, f"#pragma hale protect Check(sum(x[0:n])) Recover(correct(y))\n{ok}", "no Check of it")
    refused(s, f"#pragma hale protect Check(hash(x[0:n])) Recover(correct(x))\n{ok}", "no checksums")
    refused(s, "\tdouble **m = 0;\n#pragma hale protect Check(sum(m[0:n][0:n]))\n" + ok, "rows", "lie apart")
    refused(s, f"\tif (n)\n#pragma hale protect Check(sum(x[0:n]))\n{ok}", "braces")
    refused(s, "\t{\n" + ok + "\n#pragma hale protect Check(sum(x[0:n]))\n\t}", "no statement of this block")


@test
def what_a_damaged_run_has_set_is_put_back_before_the_next_one(s):
    s.write("outside.h", "/* " + "x" * 560 + " */\nextern int outside; /* its place here is one of the region in damaged.c */\n")
    exe = build(s, "damaged", r'''
#include <stdio.h>
#include "outside.h"
int outside;
int main(void)
{
	double a[100];
	int found = 0;
	for (int i = 0; i < 100; i++) a[i] = 1;
#pragma protect Check(sum(a)) Recover(correct(a))
	{
		/* ------------------------------------------------------------------------------------------------- */
		/* ------------------------------------------------------------------------------------------------- */
		/* ------------------------------------------------------------------------------------------------- */
		/* ------------------------------------------------------------------------------------------------- */
		/* ------------------------------------------------------------------------------------------------- */
		for (int i = 0; i < 100; i++) {
			if (a[i] != 1) found = 1;
			outside += a[i] == 1;
		}
	}
	printf("%d %d\n", found, outside);
	return 0;
}
''')
    for seed in range(4):
        r = s.run(exe, env={"HALE_PROTECT_INJECT": f"var=a,seed={SEED + seed}", "HALE_PROTECT": "report=report.json"})
        expect(r.status == 0 and r.out == "0 100\n" and s.report()["variables"][0]["corrected"] == 1, r)


@test
def a_region_that_does_not_write_what_it_was_taken_to_write_repairs_nothing(s):
    s.write("norm.c", """double norm(double *a, int n) { double t = 0; for (int i = 0; i < n; i++) t += a[i]; return t; }
void fill(double *a, int n) { for (int i = 0; i < n; i++) a[i] = i; }
""")
    s.write("unseen.c", """#include <stdio.h>
double norm(double *a, int n); /* without const, and in another object */
void fill(double *a, int n);
int main(void)
{
	double a[100], x, y;
	fill(a, 100);
#pragma protect Continue
	x = norm(a, 100);
#pragma protect Check(hash(a))
	y = norm(a, 100);
	printf("%g\\n", x + y);
	return 0;
}
""")
    for name in ("norm", "unseen"):
        r = halecc(s, "-c", name + ".c")
        expect(r.status == 0, r)
    r = halecc(s, "unseen.o", "norm.o", "-o", "unseen")
    expect(r.status == 0, r)
    r = s.run(s.path("unseen"))
    expect(r.status == 0 and r.out == "9900\n", r)
    r = s.run(s.path("unseen"), env={"HALE_PROTECT_INJECT": f"var=a,region=region 1,seed={SEED}"})
    expect(r.status == 72 and "'a'" in r.err and "does not write it" in r.err and not r.out, r)


@test
def what_threads_tasks_and_messages_write_is_noted_when_it_is_there(s):
    code = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct job { double *a; int n; };
static double global[500];
static void set(double *a, int n) { usleep(20000); for (int i = 0; i < n; i++) a[i] = i; }
static void *fill(void *p) { struct job *j = p; set(j->a, j->n); return NULL; }
static void *fill_global(void *p) { set(global, 500); return p; }
static double use(const double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }
static void wait_for(pthread_t t) { pthread_join(t, NULL); }
int main(void)
{
	int n = 500;
	double *A = calloc(n, sizeof *A), *B = calloc(n, sizeof *B), s;
	struct job j = {A, n};
	pthread_t t, t2;
	memset(global, 0, sizeof global);
	pthread_create(&t, NULL, fill, &j);
	pthread_create(&t2, NULL, fill_global, NULL);
	wait_for(t2);
	pthread_join(t, NULL);
#pragma omp parallel num_threads(2)
#pragma omp single
	{
#pragma omp task
		set(B, n);
#pragma omp taskwait
#pragma protect Check(sum(B[0:n])) Recover(correct(B))
		s = use(B, n);
	}
#pragma protect Check(sum(A[0:n]), sum(global)) Recover(correct(A), correct(global))
	s += use(A, n) + use(global, 500);
	printf("%g\n", s);
	return 0;
}
'''
    exe = build(s, "later", code, "-fopenmp")
    for inject in ("var=A", "var=B", "var=global", "var=none"):
        r = s.run(exe, env={"HALE_PROTECT_INJECT": f"{inject},seed={SEED}"})
        expect(r.status == 0 and r.out == "374250\n", inject, r)
    s.write("mpi.h", """typedef int MPI_Request;
int MPI_Irecv(void *a, int n, int type, int from, int tag, int comm, MPI_Request *r);
int MPI_Wait(MPI_Request *r, void *status);
""")
    s.write("message.c", """#include "mpi.h"
void f(double *a, const double *b, double *c)
{
	MPI_Request r;
	MPI_Irecv(a, 3, 0, 0, 0, 0, &r);
	c[1] = b[0];
	MPI_Wait(&r, 0);
#pragma protect Check(sum(a[0:3]))
	c[0] = a[0];
}
""")
    r = halecc(s, "--show", "message.c")
    expect(r.status == 0 and r.out.find("MPI_Wait") < r.out.find("hale_note(&hale_a"), r)


@test
def jumps_may_pass_a_region_and_its_declarations(s):
    exe = build(s, "passed", r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void dirty(void) { volatile char x[4000]; memset((void *)x, 0x5a, sizeof x); }
static int work(int n)
{
	double *A = NULL, s = 0;
	int status = 1;
	if (n < 0)
		goto out;
	A = malloc(n * sizeof *A);
	for (int i = 0; i < n; i++) A[i] = i;
#pragma protect CR(A[0:n]) Continue
	for (int i = 0; i < n; i++) A[i] += 1;
#pragma protect Check(sum(A[0:n])) Recover(correct(A))
	for (int i = 0; i < n; i++) s += A[i];
	printf("%g\n", s);
	status = 0;
out:
	free(A);
	return status;
}
int main(void) { int r; dirty(); r = work(-1); dirty(); return !(r == 1 && work(10) == 0); }
''')
    for inject in ("none", "A"):
        r = s.run(exe, env={"HALE_PROTECT_INJECT": f"var={inject},seed={SEED}"})
        expect(r.status == 0 and r.out == "55\n", r)
    refused(s, "\tswitch (n) {\n\tcase 0:;\n#pragma hale protect Check(sum(x[0:n]))\n\tcompute(x, y, n);\n\tbreak;\n"
            "\tcase 1:\n\tn = 3;\n\t}", "a case of this switch", "braces")


@test
def wrong_extents_are_sentences(s):
    code = r'''
#include <stdio.h>
#include <stdlib.h>
static double use(const double *a, long n) { double s = 0; for (long i = 0; i < n; i++) s += a[i]; return s; }
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10, m = 10;
	double *A = calloc(100, 8), B[10][10] = {{1}}, s;
	(void)argv, (void)B, (void)m;
#pragma protect Check(sum(EXTENT)) /* a comment, with ( and "quotes" */ Recover(correct(EXTENT)) // and, (another
	s = use(A, 100) + B[0][0];
	printf("%g\n", s);
	return 0;
}
'''
    for extent, n, word in (("A[0:n]", 10, ""), ("A[0:n]", -1, "negative extent"), ("A[0:n*65536]", 65536, "no memory there"),
                            ("B[0:n][0:m]", 10, ""), ("B[0:m][0:n]", 9, "parts of rows"), ("B[0:n]", 10, "")):
        exe = build(s, "extent", code.replace("EXTENT", extent))
        r = s.run(exe, str(n))
        expect(r.status == (72 if word else 0) and word in r.err and (word or r.out == "1\n"), extent, n, r)
    p = "\tdouble z[4][6];\n\tcompute(x, z[0], 24);\n"
    refused(s, p + "#pragma hale protect Check(sum(z[0:4][2:3]))\n\tcompute(z[0], y, n);", "whole rows")
    refused(s, p + "#pragma hale protect Check(sum(z[0:4][0:3]))\n\tcompute(z[0], y, n);", "whole rows")


@test
def regions_that_jump_out_or_cannot_run_twice_are_refused(s):
    p = "#pragma hale protect Check(sum(x[0:n]))\n"
    refused(s, p + "\tif (x[0] > 0) return 1;", "return leaves the region")
    refused(s, "\tfor (;;) {\n" + p + "\tif (x[0] > 0) break;\n}", "break leaves")
    refused(s, "\tfor (;;) {\n" + p + "\tif (x[0] > 0) continue;\n}", "continue leaves")
    refused(s, p + "\tif (x[0] > 0) goto out;\nout:", "goto leaves")
    refused(s, p + "\tif (x[0] > 0) longjmp(env, 1);", "longjmp")
    refused(s, p + "\tinner(x);", "longjmp", "in a function that it calls",
            before="static void inner(double *x) { if (x[0] > 0) longjmp(env, 1); }")
    refused(s, p + "\tfree(x);", "free", "done twice")
    refused(s, p + '\tif (scanf("%lf", y)) y[0] += x[0];', "scanf", "reads what comes next")
    refused(s, p + "\tif (fread(y, 8, 1, stdin)) y[0] += x[0];", "fread", "reads what comes next")
    refused(s, p + "\tif (x[0] > 0) exit(0);", "ends by exit")
    refused(s, p + "\t{\n" + "".join(f"\tv{i} += x[0];\n" for i in range(65)) + "\t}", "more than 64 scalars",
            before="int " + ", ".join(f"v{i}" for i in range(65)) + ";")
    refused(s, p + "\tdouble z = x[0];", "declaration")
    refused(s, "\tstruct { double a[4], b[4]; } v = {{x[0]}, {0}};\n#pragma hale protect Check(sum(v.a)) Continue\n"
            "\tcompute(v.a, y, 4);\n#pragma hale protect Check(sum(v.b))\n\tcompute(v.b, y, 4);", "another part of 'v'")
    refused(s, "#pragma hale protect Check(product(y[0:n], x, x, n))\n\tcompute(x, y, n);", "product judges a matrix")
    refused(s, p + "\tx[0] = 1;", "writes 'x'", "next region")
    refused(s, p + "\tset(x);", "writes 'x'", before="static void set(double *x) { for (int i = 0; i < 3; i++) x[i] = 0; }")
    refused(s, p + "\ty[0] = next(x);", "changes 'k'", "argument",
            before="static double next(const double *x) { static int k; return x[k++]; }")
    refused(s, "\tif (n) goto in;\n" + p + "\t{\nin:\n\ty[0] = x[0];\n\t}", "jumps to this label")
    refused(s, '\t_Pragma("hale protect Check(sum(x[0:n]))")\n\tcompute(x, y, n);', "not _Pragma")
    refused(s, "\tdouble *q = y;\n#pragma hale protect Continue\n\tcompute(x, y, n);\n#pragma hale protect Continue\n"
            "\tcompute(x, q, n);\n#pragma hale protect Check(sum(y[0:n]))\n\tn = y[0];", "another name of 'y'")
    refused(s, p + "\tMPI_Barrier(0);", "MPI_Barrier", "Add Comm", before="int MPI_Barrier(int comm);")
    refused(s, p.replace("protect", "protect Redundancy Comm") + "\tcompute(x, y, n);", "Redundancy together with Comm")
    refused(s, "#pragma hale protect Continue\n\tcompute(x, y, n);\n\tdouble z = 3;\n"
            "#pragma hale protect Check(sum(y[0:n])) Continue\n\tcompute(y, x, n);\n"
            "#pragma hale protect Check(sum(x[0:n]))\n\tx[0] = y[0];\n\tn = z;", "declared between two regions")


@test
def doubtful_regions_are_compiled_with_a_warning(s):
    said(s, '#pragma hale protect Check(sum(x[0:n]))\n\tprintf("%g\\n", x[0]);', "printf", "written twice")
    said(s, "#pragma hale protect Check(sum(x[0:n])) Continue\n\tcompute(x, y, n);", "Continue, but no region follows")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tcompute(x, y, n);\n\ts = x[1];", "used again in line")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tfor (int i = 0; i < n; i++) y[i] += x[i];",
         "'y' is updated in place", "CR(y[0:n])")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tfor (int i = 0; i < n; i++) y[i] = y[i] + x[i];",
         "'y' is updated in place")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\ty[0] = x[0] * rand();", "rand", "something else")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tfor (int i = 0; i < n; i++) g.y[i] += x[i];",
         "'g' is updated in place", before="struct grid { double *y; } g;")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tfor (int i = 0; i < n; i++) if (x[i] > 1) y[i] = 1;",
         "data decide where 'y' is written", "CR(y[0:n])")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tfor (int i = 0; i < n; i++) y[(int)x[i]] = 1;",
         "data decide where 'y' is written")
    said(s, "\ty[0] = 1;\n#pragma hale protect Check(sum(x[0:n]))\n\tcompute(x, y, n);", "is not seen", "CR(y[0:n])")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tcblas_daxpy(n, 1, x, 1, y, 1);", "'y' is updated in place",
         before="void cblas_daxpy(int, double, const double *, int, double *, int);")
    s.write("regions.h", "static inline void g(double *x, int n)\n{\n#pragma hale protect Check(sum(x[0:n]))\n\tx = x + n;\n}\n")
    said(s, "#pragma hale protect Check(sum(x[0:n]))\n\tcompute(x, y, n);", "regions.h:3", "not protected",
         before='#include "regions.h"')
    said(s, "#pragma hale protext\n\tcompute(x, y, n);", "knows 'protect' only")
    said(s, "#if 0\n#pragma hale protect nonsense(\n#endif\n\tcompute(x, y, n);")


@test
def wrong_settings_are_refused_by_the_program(s):
    exe = chain(s)
    for env, word in (({"HALE_PROTECT": "rapport=x"}, "report=FILE"),
                      ({"HALE_PROTECT": "threads=0"}, "N from 1"),
                      ({"HALE_PROTECT": "threads=many"}, "N from 1"),
                      ({"HALE_PROTECT_INJECT": "var=A,bits=0"}, "bits=K"),
                      ({"HALE_PROTECT_INJECT": "rate=often"}, "rate=")):
        r = s.run(exe, "16", env=env)
        expect(r.status == 64 and word in r.err, r)
    r = s.run(exe, "16", env={"HALE_PROTECT": "report=/nowhere/x"})
    expect(r.status == 0 and "/nowhere/x" in r.err, r)


main()
