// SPDX-License-Identifier: BSD-3-Clause
// The C++ bindings that MPI-3 removed and Debian's Open MPI still has (libmpi_cxx.so.40). The
// output is the same under every MPI.
#include <mpi.h>
#include <cstdio>
#include <cstring>
#include <vector>

static int me, n, bad;

static void check(const char *what, bool good)
{
	int mine = good, all = 0;
	MPI::COMM_WORLD.Allreduce(&mine, &all, 1, MPI::INT, MPI::LAND);
	bad += !all;
	if (me == 0)
		std::printf("%-30s %s\n", what, all ? "yes" : "NO");
}

static void add_twice(const void *in, void *inout, int count, const MPI::Datatype &type)
{
	const int *a = static_cast<const int *>(in);
	int *b = static_cast<int *>(inout);
	if (type.Get_size() != int(sizeof(int)))
		bad++;
	for (int i = 0; i < count; i++)
		b[i] += a[i];
}

static int copies, deletions;

static int copy_fn(const MPI::Comm &, int, void *extra, void *in, void *out, bool &flag)
{
	copies++;
	*static_cast<void **>(out) = static_cast<char *>(in) + reinterpret_cast<std::size_t>(extra);
	flag = true;
	return MPI_SUCCESS;
}

static int delete_fn(MPI::Comm &, int, void *, void *)
{
	deletions++;
	return MPI_SUCCESS;
}

static int handled;

static void handler(MPI::Comm &comm, int *code, ...)
{
	handled = MPI::Get_error_class(*code) * 100 + comm.Get_size();
}

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);
	me = MPI::COMM_WORLD.Get_rank();
	n = MPI::COMM_WORLD.Get_size();
	check("initialized", MPI::Is_initialized() && !MPI::Is_finalized());

	int out = me, in = -1;
	MPI::Request requests[2];
	requests[0] = MPI::COMM_WORLD.Irecv(&in, 1, MPI::INT, (me + n - 1) % n, 3);
	requests[1] = MPI::COMM_WORLD.Isend(&out, 1, MPI::INT, (me + 1) % n, 3);
	MPI::Status statuses[2];
	MPI::Request::Waitall(2, requests, statuses);
	check("isend, irecv, waitall", in == (me + n - 1) % n && statuses[0].Get_source() == in &&
					   statuses[0].Get_count(MPI::INT) == 1);

	MPI::Op op;
	op.Init(add_twice, true);
	int sum = -1;
	MPI::COMM_WORLD.Allreduce(&me, &sum, 1, MPI::INT, op);
	check("user operation", sum == n * (n - 1) / 2);
	op.Free();

	MPI::Datatype vec = MPI::INT.Create_vector(3, 1, 2);
	vec.Commit();
	int from[6] = {1, 2, 3, 4, 5, 6}, to[3] = {0, 0, 0};
	MPI::COMM_WORLD.Sendrecv(from, 1, vec, me, 1, to, 3, MPI::INT, me, 1);
	check("vector type", to[0] == 1 && to[1] == 3 && to[2] == 5);
	vec.Free();

	int key = MPI::Comm::Create_keyval(copy_fn, delete_fn, reinterpret_cast<void *>(5));
	MPI::Intracomm dup = MPI::COMM_WORLD.Dup();
	dup.Set_attr(key, reinterpret_cast<void *>(37));
	MPI::Intracomm dup2 = dup.Dup();
	void *value = 0;
	bool found = dup2.Get_attr(key, &value);
	check("attribute copied by callback",
	      found && value == reinterpret_cast<void *>(42) && copies == 1);
	dup2.Free();
	dup.Free();
	check("attributes deleted", deletions == 2);
	MPI::Comm::Free_keyval(key);

	bool periods[1] = {true};
	int dims[1] = {n}, source, dest;
	MPI::Cartcomm cart = MPI::COMM_WORLD.Create_cart(1, dims, periods, false);
	cart.Shift(0, 1, source, dest);
	check("cart", source == (me + n - 1) % n && dest == (me + 1) % n);
	cart.Free();

	MPI::Group world = MPI::COMM_WORLD.Get_group();
	int first[1] = {0};
	MPI::Group one = world.Incl(1, first);
	check("groups", one.Get_size() == 1 &&
			    MPI::Group::Compare(one, world) == (n > 1 ? MPI_UNEQUAL : MPI_IDENT));
	one.Free();
	world.Free();

	MPI::Errhandler eh = MPI::Comm::Create_errhandler(handler);
	MPI::COMM_WORLD.Set_errhandler(eh);
	MPI::COMM_WORLD.Send(&me, 1, MPI::INT, n + 7, 0);
	check("error handler", handled == MPI_ERR_RANK * 100 + n);
	eh.Free();
	MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_ARE_FATAL);

	std::vector<int> all(n, -1);
	MPI::COMM_WORLD.Allgather(&me, 1, MPI::INT, &all[0], 1, MPI::INT);
	bool good = true;
	for (int i = 0; i < n; i++)
		good = good && all[i] == i;
	check("allgather", good);
	MPI::Info info = MPI::Info::Create();
	info.Set("where", "here");
	char text[8] = "";
	check("info", info.Get("where", 7, text) && std::strcmp(text, "here") == 0);
	info.Free();
	if (me == 0)
		std::printf("bad: %d\n", bad);
	MPI::Finalize();
	return bad != 0;
}
