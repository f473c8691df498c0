#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`#pragma offload` in halecc: what runs on a device gives what the plain compiler's program gives, also when there is no
device or it is lost; what can't be done is said with file, line and caret."""

from lib import *
from halecc_parts import HALECC, HALECC_ENV, halecc

DATA = os.path.join(ROOT, "tests", "data", "halecc_offload")


class Served:
    """`hale device serve`, and programs that find it."""

    def __init__(self, s, devices=2):
        self.s = s
        env = {"HALE_OFFLOAD_CACHE": s.path("cache"), "HALE_RIO_TIMEOUT": "1s"}
        self.job = s.start(HALE, "device", "serve", "--devices", devices, "--memory", "600M", "--listen", "127.0.0.1:0",
                           "--root", s.dir, env=env)
        self.env = dict(env, HALE_DEVICES="near=" + self.job.until_output(r"serving at (\S+)")[1])

    def processes(self):
        return [p for p in children(self.job.pid) if name_of(p).startswith("hale-offload")]

    def end(self):
        self.job.kill(signal.SIGTERM)
        expect(self.job.wait().status == 0, "the daemon ends")


def plain(s, *files, name="plain"):
    r = s.run("gcc", "-O1", "-w", *files, "-o", name, "-lm")
    expect(r.status == 0, r)
    return s.path(name)


@test
def what_is_made_of_a_statement(s):
    shutil.copy(os.path.join(DATA, "offload.c"), s.path("offload.c"))
    r = halecc(s, "--show", "offload.c")
    with open(os.path.join(DATA, "offload.expected")) as f:
        expect(r.status == 0 and r.out == f.read(), "it becomes other code than offload.expected has", r)


@test
def a_statement_on_a_device_gives_what_it_gives_here(s):
    source = os.path.join(DATA, "offload.c")
    right = s.run(plain(s, source)).out
    r = halecc(s, "-O1", "-Wall", source, "-o", "solver")
    expect(r.status == 0 and r.err == "", r)
    d = Served(s)
    for n in ([], ["40"], ["100001"]):
        right = s.run(s.path("plain"), *n).out
        r = s.run(s.path("solver"), *n, env=dict(d.env))
        expect(r.status == 0 and r.out == right and r.err == "", right, r)
    job = s.start(s.path("solver"), env=dict(d.env))
    expect(job.wait().status == 0, "it runs again")
    # without a device it runs here, and says so once for each one
    r = s.run(s.path("solver"))
    expect(r.status == 0 and r.out == s.run(s.path("plain")).out, r)
    expect(len(re.findall(r"offload\.c:\d+: not on device hale:0, but here", r.err)) == 1, r)
    # nor with a number that there is not
    s.write("many.c", "#include <stdio.h>\nint main(void)\n{\n\tint x = 1;\n\tfor (int i = 0; i < 3; i++) {\n"
                      "#pragma offload target(hale:7)\n\t\tx *= 2;\n\t}\n\tprintf(\"%d\\n\", x);\n\treturn 0;\n}\n")
    r = halecc(s, "many.c", "-o", "many")
    expect(r.status == 0, r)
    r = s.run(s.path("many"), env=d.env)
    expect(r.out == "8\n" and r.err.count("many.c:6: not on device hale:7") == 1 and "no device hale:7" in r.err, r)
    d.end()


LONG = """#include <stdio.h>
#include <unistd.h>
int main(void)
{
	static unsigned x[1000];
	unsigned long sum = 0;

	for (int round = 0; round < 60; round++) {
#pragma offload target(hale:0) inout(x)
		for (int i = 0; i < 1000; i++) {
			x[i] = x[i] * 1664525u + (unsigned)i;
			sum += x[i];
			if (i % 100 == 0)
				usleep(1000);
		}
		printf("%d %lu\\n", round, sum);
		fflush(stdout);
	}
	return 0;
}
"""


@test
def a_device_that_is_lost_costs_no_result(s):
    s.write("long.c", LONG)
    right = s.run(plain(s, "long.c")).out
    r = halecc(s, "-O1", "long.c", "-o", "long")
    expect(r.status == 0, r)
    d = Served(s)
    job = s.start(s.path("long"), env=d.env)
    job.until_output(r"^5 ")
    for p in d.processes():
        os.kill(p, signal.SIGKILL)
    r = job.wait()
    expect(r.status == 0 and r.out == right and "but here" in r.err, r)
    d.end()


MAKEFILE = """CC = {halecc}
prog: main.o other.o
\t$(CC) $^ -o $@ -lm
%.o: %.c
\t$(CC) -O1 -MMD -c $< -o $@
"""


@test
def make_and_several_files(s):
    s.write("scale.h", "#include <math.h>\nstatic inline double scale(double x)\n{\n\treturn sqrt(x) * 3;\n}\n"
                       "double other(const double *x, int n);\n")
    for name, factor in (("main", 1), ("other", 2)):
        main = "" if name == "other" else ("int main(void)\n{\n\tdouble x[500];\n\tfor (int i = 0; i < 500; i++)\n"
                                           "\t\tx[i] = i;\n\tprintf(\"%.9f %.9f\\n\", mine(x, 500), other(x, 500));\n\treturn 0;\n}\n")
        function = "static double mine" if name == "main" else "double other"
        s.write(name + ".c", f"""#include <stdio.h>
#include "scale.h"
{function}(const double *x, int n)
{{
	double sum = 0;
#pragma offload target(hale:{factor - 1}) in(x[0:n])
	for (int i = 0; i < n; i++)
		sum += {factor} * scale(x[i]);
	return sum;
}}
{main}""")
    s.write("Makefile", MAKEFILE.format(halecc=HALECC))
    right = s.run(plain(s, "main.c", "other.c")).out
    if not os.path.exists(HALECC):
        skip("halecc is not built: libclang-14-dev is not installed")
    r = s.run("make", env=HALECC_ENV)
    expect(r.status == 0 and "scale.h" in s.read("main.d"), r)
    d = Served(s)
    r = s.run(s.path("prog"), env=d.env)
    expect(r.status == 0 and r.out == right and r.err == "", right, r)
    d.end()
    # in one call
    r = halecc(s, "-O1", "main.c", "other.c", "-o", "both", "-lm")
    expect(r.status == 0 and s.run(s.path("both")).out == right, r)
    expect(not [f for f in os.listdir(s.dir) if f.startswith("halecc.")], os.listdir(s.dir))


def refused(s, body, *words, before="", line=None):
    s.write("bad.c", f"#include <stdio.h>\nint far_away(int x);\n{before}\nint f(double *x, int n, void *v)\n{{\n"
                     f"\tint k = 0;\n{body}\n\treturn k;\n}}\n")
    r = halecc(s, "-c", "bad.c")
    expect(r.status == 1 and re.search(r"^bad\.c:\d+:\d+: error: ", r.err, re.M) and re.search(r"^\s*\^$", r.err, re.M), r)
    for w in words:
        expect(w in r.err, f"'{w}' is not said", r)
    expect(not os.path.exists(s.path("bad.o")), "an object was made all the same", r)


WAYS = r"""#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int find(const char *s, int c)
{
	return (int)(strchrnul(s, c) - s);
}

int main(void)
{
	double a[100] = {0}, *same = a + 1, sum = 0;
	char text[] = "a device";
	int n = 100, at = 0;

#pragma offload target(hale:0) inout(a[0:100]) // the length stays known
#pragma omp parallel for
	for (unsigned i = 0; i < sizeof(a) / sizeof(*a); i++)
		a[i] += i;
#pragma offload target(hale:0) inout(a[0:n], same[0:n - 1]) /* two names of one place */
	for (int i = 0; i < n - 1; i++)
		same[i] = a[i] + 1;
#pragma offload target(hale:0)
	if (n > 10)
		at = find(text, 'd');
	else
		at = -1;
	for (int i = 0; i < n; i++)
		sum += a[i];
	printf("%g %d\n", sum, at);
	fflush(stdout);
	if (fork() == 0) {
#pragma offload target(hale:0)
		at += 40;
		printf("%d\n", at);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
#pragma offload target(hale:0)
	at += 60;
	printf("%d\n", at);
	return 0;
}
"""


@test
def whatever_stands_in_a_statement_it_gives_the_same(s):
    s.write("ways.c", WAYS)
    right = s.run(plain(s, "ways.c")).out
    r = halecc(s, "-O1", "-Wall", "-Wno-unknown-pragmas", "ways.c", "-o", "ways")
    expect(r.status == 0 and r.err == "", r)
    shown = halecc(s, "--show", "ways.c").out.partition("of the device")[2]
    expect("#pragma omp parallel for\n\tfor" in shown and "double a[100];" in shown, shown)
    d = Served(s)
    r = s.run(s.path("ways"), env=d.env)
    expect(r.status == 0 and r.out == right, right, r)
    expect("ways.c:22: not on device hale:0, but here: 'a' and 'same' overlap" in r.err and "forked" in r.err, r)
    expect(r.err.count("but here") == 2, "the others have not run on the device", r)
    d.end()


@test
def what_a_device_has_of_its_own_is_warned_of(s):
    s.write("own.h", "static inline void g(int *x)\n{\n#pragma offload target(hale:0) inout(x[0:1])\n\tx[0]++;\n}\n")
    s.write("own.c", "#include <stdio.h>\n#include \"own.h\"\nvoid f(int k)\n{\n#pragma offload target(hale:0)\n"
                     "\tprintf(\"%d\\n\", k);\n\tg(&k);\n}\n")
    r = halecc(s, "-c", "own.c")
    expect(r.status == 0 and "own.h:3: warning" in r.err and re.search(r"^own\.c:6:\d+: warning: printf on a device", r.err, re.M), r)


@test
def what_cannot_be_done_is_said_with_its_place(s):
    on = "#pragma offload target(hale:0)"
    loop = "\tfor (int i = 0; i < n; i++)\n\t\tx[i] += 1;"
    for body, words in (
            (f"{on} in(y[0:n])\n{loop}", "there is no variable 'y'"),
            (f"{on}\n{loop}", "'x' is a pointer: say in the pragma"),
            (f"{on} inout(x)\n{loop}", "'x' is a pointer: say how much"),
            (f"{on} inout(x[0])\n{loop}", "[low:length]"),
            (f"{on} inout(x[:n])\n{loop}", "both given"),
            (f"{on} inout(x[0:0])\n{loop}", "is empty"),
            (f"{on} inout(x[0:n], x[0:n])\n{loop}", "named twice"),
            (f"{on} in(v[0:n])\n\tk = v != 0;", "has no size"),
            (f"{on} in(k[0:2])\n\tk = 1;", "neither a pointer nor an array"),
            (f"#pragma offload target(hale:)\n\tk = 1;", "number of the device is missing"),
            (f"#pragma offload target(hale:4096)\n\tk = 1;", "from 0 to 1023"),
            (f"#pragma offload target(hale:-1)\n\tk = 1;", "from 0 to 1023"),
            (f"#pragma offload target(mic:0)\n\tk = 1;", "the target is hale:N"),
            (f"#pragma offload in(k)\n\tk = 1;", "target(hale:N)"),
            (f"{on} nocopy(k)\n\tk = 1;", "'nocopy' is unknown"),
            (f"{on} in k\n\tk = 1;", "wants a list"),
            (f"{on}\n\treturn 1;", "return leaves"),
            (f"{on}\n\tif (n) {{\n\t\treturn 1;\n\t}}", "return leaves"),
            (f"\tfor (;;) {{\n{on}\n\t\tif (n)\n\t\t\tbreak;\n\t}}", "break leaves"),
            (f"\tfor (;;) {{\n{on}\n\t\tif (n)\n\t\t\tcontinue;\n\t}}", "continue leaves"),
            (f"{on}\n\tif (n)\n\t\tgoto out;\nout:\n\tk = 2;", "goto leaves"),
            (f"\tif (n)\n\t\tgoto in;\n{on}\n\t{{\nin:\n\t\tk = 2;\n\t}}", "goto leads into"),
            (f"{on}\n\tint m = 3;", "a declaration can't run"),
            (f"{on} inout(x[0:n])\n\tx++;", "moves the pointer 'x'"),
            (f"{on}\n\tk = far_away(k);", "'far_away' is not in this file"),
            (f"\tstruct {{ int *p; }} s = {{&k}};\n{on}\n\tk = *s.p;", "holds a pointer"),
            (f"{on}\n\t{{\n\t\tstatic int m;\n\t\tk = m++;\n\t}}", "'m' is static"),
            (f"\tdouble y[n];\n{on} inout(y[0:n])\n\tfor (int i = 0; i < n; i++)\n\t\ty[i] = sizeof(y);", "the length of 'y'"),
            (f"{on} inout(x[0:n])\n\t{{\n#pragma protect Check(sum(x[0:n]))\n\t\tk = x[0] > 1;\n\t}}", "no region is protected"),
            (f"\t_Pragma(\"offload target(hale:0)\")\n\tk = 1;", "a line of its own"),
            (f"\tif (n)\n{on}\n\t\tk = 2;", "block")):
        refused(s, body, words)
    refused(s, f"{on}\n\tk = g();", "'p' is a pointer", "a function that is called here uses it",
            before="static int *p;\nstatic int g(void)\n{\n\treturn *p;\n}\n")
    refused(s, f"{on}\n\tk = g();", "'count' is static", "a function that is called here uses it",
            before="static int g(void)\n{\n\tstatic int count;\n\treturn count++;\n}\n")
    # it is odd, and compiled
    s.write("odd.c", "void f(double *x, int n)\n{\n" + on + " in(x[0:n])\n" + loop + "\n}\n")
    r = halecc(s, "-c", "odd.c")
    expect(r.status == 0 and "what it writes is lost" in r.err, r)


main()
