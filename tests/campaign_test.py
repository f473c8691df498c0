# SPDX-License-Identifier: BSD-3-Clause
"""hale campaign: what became of flipped bits, in programs that protect themselves and in others."""

from lib import *

HALECC = os.path.join(BUILD, "halecc")


def campaign(s, *argv, status=0):
    r = s.hale("campaign", "--json", *argv)
    expect(r.status == status, r)
    return json.loads(r.out)


def folders():
    return {f for f in os.listdir(os.environ.get("TMPDIR", "/tmp")) if f.startswith("hale-campaign")}


def total(c, what):
    return sum(v[what] for v in c["variables"])


@test
def in_protected_data_every_fault_is_corrected_or_harmless(s):
    if not os.path.exists(HALECC):
        skip("halecc is not built: libclang-14-dev is not installed")
    s.write("sum.c", r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static double x[4096], late[64];
	double s = 0, t = 0;
	for (int i = 0; i < 4096; i++) x[i] = i;
#pragma hale protect Check(sum(x)) Recover(correct(x))
	{
		usleep(20000);
		s = 0;
		for (int i = 0; i < 4096; i++) s += x[i];
	}
	for (int i = 0; i < 64; i++) late[i] = i;
#pragma hale protect Check(sum(late)) Recover(correct(late))
	{
		t = 0;
		usleep(argc > 1 ? atoi(argv[1]) : 0);
		for (int i = 0; i < 64; i++) t += late[i];
	}
	printf("%.17g\n", s + t);
	return 0;
}
""")
    r = s.run(HALECC, "-O1", "sum.c", "-o", "sum",
              env={"HALE_INCDIR": os.path.join(ROOT, "include"), "HALE_LIBDIR": BUILD})
    expect(r.status == 0, r)
    c = campaign(s, "--runs", "12", "--rate", "40/s", "--plot", "sum.svg", "--seed", str(SEED), "./sum")
    expect(c["ends"]["right"] == 12 and total(c, "faults") > 4, c)
    x = next(v for v in c["variables"] if v["name"] == "x")
    expect(x["corrected"] > 0 and x["corrected"] + x["harmless"] == x["faults"], c)
    expect("<svg" in s.read("sum.svg"), "no picture")
    again = campaign(s, "--runs", "12", "--rate", "40/s", "--seed", str(SEED + 1000), "./sum")
    expect(again["variables"] != c["variables"], "another seed gives the same faults", c)


@test
def each_rank_of_a_job_is_struck_and_tells(s):
    if not os.path.exists(HALECC):
        skip("halecc is not built: libclang-14-dev is not installed")
    s.write("ranks.c", r'''
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	static double x[4096];
	double s = 0, all = 0;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 4096; i++) x[i] = i + rank;
#pragma protect Check(sum(x)) Recover(correct(x))
	{
		usleep(300000);
		s = 0;
		for (int i = 0; i < 4096; i++) s += x[i];
	}
	MPI_Reduce(&s, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) printf("%.17g\n", all);
	MPI_Finalize();
	return 0;
}
''')
    r = s.run(HALECC, "-O1", "ranks.c", "-o", "ranks", env={
        "HALE_INCDIR": os.path.join(ROOT, "include"), "HALE_LIBDIR": BUILD, "HALE_CC": "mpicc.openmpi"})
    expect(r.status == 0, r)
    c = campaign(s, "--runs", "2", "--rate", "20/s", "--seed", str(SEED), HALE, "run", "-n", "3", "--", "./ranks")
    # some seven in one process
    expect(c["ends"]["right"] + c["ends"]["reported"] == 2 and total(c, "faults") > 12, c)


@test
def what_nobody_notices_is_counted_as_wrong_and_ends_with_3(s):
    before = folders()
    s.write("plain.c", r"""
#include <stdio.h>
#include <unistd.h>
double numbers[4096], unused[4096];
double *volatile table[4096];
int main(void)
{
	double s = 0;
	for (int i = 0; i < 4096; i++) numbers[i] = i, table[i] = &numbers[i], unused[i] = 1;
	usleep(30000);
	for (int i = 0; i < 4096; i++) s += *table[i];
	printf("%.17g\n", s);
	FILE *f = fopen("result", "w");
	fprintf(f, "%.17g\n", s);
	fclose(f);
	return 0;
}
""")
    expect(s.run("gcc", "-O1", "plain.c", "-o", "plain").status == 0)
    c = campaign(s, "--outside", "--data", "unused", "--runs", "5", "--rate", "200/s", "./plain")
    expect(total(c, "faults") > 5 and total(c, "harmless") == total(c, "faults"), c)
    c = campaign(s, "--outside", "--data", "numbers", "--runs", "5", "--rate", "400/s", "--output", "result", "./plain",
                 status=3)
    expect(total(c, "wrong") > 0 and [v["name"] for v in c["variables"]] == ["numbers"], c)
    c = campaign(s, "--outside", "--data", "table", "--runs", "10", "--rate", "1000/s", "--judge", "true", "./plain")
    expect(c["ends"]["crashed"] > 0 and total(c, "crashed") > 0 and total(c, "wrong") == 0, c)
    r = s.hale("campaign", "--runs", "3", "--judge", "true", "sh", "-c",
               'test -n "$HALE_PROTECT_INJECT" || exit 0; echo one >&2; echo the last >&2; exit 5')
    expect(r.err.count("ended with status 5; its last line: the last") == 3 and "run 2 of seed 1" in r.err, r)
    r = s.hale("campaign", "--runs", "1", "--judge", "true", "sh", "-c", 'test -z "$HALE_PROTECT_INJECT" || kill -SEGV $$')
    expect("ended by signal 11 (SIGSEGV), and said nothing" in r.err, r)
    expect(folders() <= before, folders() - before)


@test
def wrong_options_and_programs_are_refused_by_a_sentence(s):
    for argv, status, word in ((["--rate", "often", "true"], 64, "1/25s"), (["--runs", "0", "true"], 64, "--runs"),
                               ([], 64, "name a program"), (["--data", "x", "true"], 64, "--outside"),
                               (["--rate", "1/s", "--faults", "2", "true"], 64, "one of them"),
                               (["false"], 1, "itself"), (["./nothing"], 1, "nothing"),
                               (["--output", "none", "true"], 1, "--output")):
        r = s.hale("campaign", *argv)
        expect(r.status == status and word in r.err and r.out == "", r)


main()
