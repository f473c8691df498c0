/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of MPI: three ranks write and read by views drawn at random, in all ways and with all
 * hints, and each byte must be where a model of the file in memory has it. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "mpi/test/ranks.h"

enum { RANKS = 3, WHOLE = 1 << 20, MOST = 8000, ROUNDS = 100 }; /* in integers */

static char path[64];

/* The same on all ranks. */
static uint32_t draw(uint32_t below)
{
	static uint64_t state = 4711;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* Ranks in turns: blocks of integers, and a gap after those of all ranks. */
struct pattern {
	int disp, block, gap;
};

static struct pattern draw_pattern(void)
{
	static const int blocks[] = {1, 1, 2, 5, 40, 500, 5000}, gaps[] = {0, 0, 1, 7, 30, 2000};

	struct pattern p = {.disp = (int)draw(50), .block = blocks[draw(7)]};

	p.gap = gaps[draw(p.block < 10 ? 5 : 6)];
	return p;
}

/* Where the i-th integer of a rank's stream lies. */
static size_t place(const struct pattern *p, int rank, size_t i)
{
	size_t turn = i / (size_t)p->block, in = i % (size_t)p->block;

	return (size_t)p->disp + turn * (size_t)(RANKS * p->block + p->gap) +
	       (size_t)(rank * p->block) + in;
}

static void view_set(MPI_File f, const struct pattern *p)
{
	MPI_Datatype block, type;

	MPI_Type_contiguous(p->block, MPI_INT, &block);
	MPI_Type_create_resized(block, 0, (MPI_Aint)(RANKS * p->block + p->gap) * 4, &type);
	MPI_Type_commit(&type);
	REQUIRE_CLASS(MPI_File_set_view(f, (MPI_Offset)(p->disp + me * p->block) * 4, MPI_INT, type,
					"native", MPI_INFO_NULL),
		      MPI_SUCCESS);
	MPI_Type_free(&block);
	MPI_Type_free(&type);
}

static MPI_File file_open(int mode, MPI_Info info)
{
	MPI_File f = MPI_FILE_NULL;

	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &f), MPI_SUCCESS);
	return f;
}

static MPI_File file_new(void)
{
	if (me == 0)
		unlink(path);
	return file_open(MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL);
}

static MPI_Info draw_hints(void)
{
	static const char *const choices[] = {"automatic", "enable", "disable"},
				 *const sizes[] = {"4096", "20000", "200000", "4000000"},
				 *const nodes[] = {"1", "2", "3"};
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "romio_ds_write", choices[draw(3)]);
	MPI_Info_set(info, "romio_ds_read", choices[draw(3)]);
	MPI_Info_set(info, "romio_cb_write", choices[draw(3)]);
	MPI_Info_set(info, "romio_cb_read", choices[draw(3)]);
	MPI_Info_set(info, "cb_buffer_size", sizes[draw(4)]);
	MPI_Info_set(info, "ind_rd_buffer_size", sizes[draw(4)]);
	MPI_Info_set(info, "ind_wr_buffer_size", sizes[draw(4)]);
	MPI_Info_set(info, "cb_nodes", nodes[draw(3)]);
	return info;
}

/* In memory the integers lie one by one, or with one between each two of them. */
static int transfer(MPI_File f, bool write, uint32_t how, int *buf, int n, MPI_Offset at,
		    bool apart)
{
	MPI_Datatype type = MPI_INT;
	MPI_Status s;
	int count = n, got;

	if (apart) {
		MPI_Type_create_resized(MPI_INT, 0, 8, &type);
		MPI_Type_commit(&type);
	}
	if (how >= 2)
		MPI_File_seek(f, at, MPI_SEEK_SET);
	if (write)
		REQUIRE_CLASS(how == 0	 ? MPI_File_write_at(f, at, buf, count, type, &s)
			      : how == 1 ? MPI_File_write_at_all(f, at, buf, count, type, &s)
			      : how == 2 ? MPI_File_write(f, buf, count, type, &s)
					 : MPI_File_write_all(f, buf, count, type, &s),
			      MPI_SUCCESS);
	else
		REQUIRE_CLASS(how == 0	 ? MPI_File_read_at(f, at, buf, count, type, &s)
			      : how == 1 ? MPI_File_read_at_all(f, at, buf, count, type, &s)
			      : how == 2 ? MPI_File_read(f, buf, count, type, &s)
					 : MPI_File_read_all(f, buf, count, type, &s),
			      MPI_SUCCESS);
	MPI_Get_count(&s, type, &got);
	if (how >= 2) {
		MPI_Offset now;

		MPI_File_get_position(f, &now);
		REQUIRE(now == at + got);
	}
	if (apart)
		MPI_Type_free(&type);
	return got;
}

static int model[WHOLE], found[WHOLE], buffer[2 * MOST];
static size_t model_end; /* in integers */

static void draw_write(MPI_File f, int round)
{
	struct pattern p = draw_pattern();
	uint32_t how = draw(4), most = draw(3) ? 300 : MOST - 100, step = 1 + draw(2);

	view_set(f, &p);
	for (int r = 0; r < RANKS; r++) {
		int n = (int)draw(most), at = (int)draw(100);

		for (int i = 0; i < n; i++) {
			size_t to = place(&p, r, (size_t)(at + i));
			int value = round << 24 | r << 20 | (i + 1);

			REQUIRE(to < WHOLE);
			model[to] = value;
			model_end = to + 1 > model_end ? to + 1 : model_end;
			if (r == me)
				buffer[(uint32_t)i * step] = value;
		}
		if (r == me)
			REQUIRE(transfer(f, true, how, buffer, n, at, step == 2) == n);
	}
}

static void draw_read(MPI_File f)
{
	struct pattern p = draw_pattern();
	uint32_t how = draw(4), most = draw(3) ? 300 : MOST - 100, step = 1 + draw(2);

	view_set(f, &p);
	for (int r = 0; r < RANKS; r++) {
		int n = (int)draw(most), at = (int)draw(100), got, there = 0;

		if (r != me)
			continue;
		while (there < n && place(&p, me, (size_t)(at + there)) < model_end)
			there++;
		memset(buffer, 0xff, sizeof(buffer));
		got = transfer(f, false, how, buffer, n, at, step == 2);
		REQUIRE(got == there); /* as many as there are before the end of the file */
		for (int i = 0; i < n; i++) {
			size_t from = place(&p, me, (size_t)(at + i));

			REQUIRE(buffer[(uint32_t)i * step] == (i < there ? model[from] : -1));
			REQUIRE(step == 1 || buffer[2 * i + 1] == -1);
		}
	}
}

/* What stands on disk, without MPI. */
static void on_disk(const void *what, size_t bytes)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 0) {
		FILE *f = fopen(path, "r");

		REQUIRE(f && fread(found, 1, sizeof(found), f) == bytes);
		REQUIRE(memcmp(found, what, bytes) == 0);
		fclose(f);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void each_byte_goes_where_the_view_says(void **state)
{
	MPI_File f = file_new();

	for (int round = 0; round < ROUNDS; round++) {
		MPI_Info info = draw_hints();

		MPI_File_close(&f);
		f = file_open(MPI_MODE_RDWR, info);
		MPI_Info_free(&info);
		draw_write(f, round);
		REQUIRE_CLASS(MPI_File_sync(f), MPI_SUCCESS);
		on_disk(model, model_end * 4);
		draw_read(f);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_File_close(&f);
}

static void where_ranks_overlap_the_last_one_wins(void **state)
{
	int mine[200], all[400] = {0};
	MPI_Datatype every;
	MPI_Info info;
	MPI_File f = file_new();

	MPI_File_close(&f);
	MPI_Info_create(&info);
	MPI_Info_set(info, "romio_cb_write", "enable");
	f = file_open(MPI_MODE_RDWR, info);
	MPI_Info_free(&info);
	MPI_Type_create_resized(MPI_INT, 0, 8, &every); /* each second one */
	MPI_Type_commit(&every);
	MPI_File_set_view(f, 0, MPI_INT, every, "native", MPI_INFO_NULL);
	for (int r = 0; r < RANKS; r++)
		for (int i = 0; i < 100; i++)
			all[2 * (i + 50 * r)] = r + 1;
	for (int i = 0; i < 100; i++)
		mine[i] = me + 1;
	REQUIRE_CLASS(MPI_File_write_at_all(f, 50 * me, mine, 100, MPI_INT, MPI_STATUS_IGNORE),
		      MPI_SUCCESS);
	on_disk(all, 399 * 4);
	MPI_Type_free(&every);
	MPI_File_close(&f);
}

static void the_shared_pointer_is_one_for_all(void **state)
{
	static const int wanted[] = {100, 200, 201, 300, 301, 302};
	int data[3] = {100 * (me + 1), 100 * (me + 1) + 1, 100 * (me + 1) + 2}, got[3] = {0};
	MPI_Offset at;
	MPI_File f = file_new();

	MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
	REQUIRE_CLASS(MPI_File_write_ordered(f, data, me + 1, MPI_INT, MPI_STATUS_IGNORE),
		      MPI_SUCCESS);
	on_disk(wanted, sizeof(wanted));
	MPI_File_get_position_shared(f, &at);
	REQUIRE(at == 6);
	MPI_Barrier(MPI_COMM_WORLD);
	/* one after the other, in any order */
	REQUIRE_CLASS(MPI_File_write_shared(f, data, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_File_get_position_shared(f, &at);
	REQUIRE(at == 9);
	MPI_File_read_at(f, 6, got, 3, MPI_INT, MPI_STATUS_IGNORE);
	REQUIRE(got[0] + got[1] + got[2] == 600 && got[0] != got[1] && got[1] != got[2]);
	REQUIRE_CLASS(MPI_File_seek_shared(f, 1, MPI_SEEK_SET), MPI_SUCCESS);
	MPI_File_read_ordered(f, got, 1, MPI_INT, MPI_STATUS_IGNORE);
	REQUIRE(got[0] == wanted[1 + me]);
	REQUIRE_CLASS(MPI_File_seek_shared(f, me, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
	MPI_File_get_position(f, &at); /* each one's own has not moved */
	REQUIRE(at == 0);
	MPI_File_close(&f);
}

/* On all ranks, before one of them changes it again. */
static void size_is(MPI_File f, MPI_Offset wanted)
{
	MPI_Offset size;

	REQUIRE_CLASS(MPI_File_get_size(f, &size), MPI_SUCCESS);
	REQUIRE(size == wanted);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void the_size_is_what_was_asked_for(void **state)
{
	MPI_File f = file_new();
	int one = 1;

	REQUIRE_CLASS(MPI_File_set_size(f, 100), MPI_SUCCESS);
	size_is(f, 100);
	REQUIRE_CLASS(MPI_File_set_size(f, 100 + me), MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_File_preallocate(f, 5000 + me), MPI_ERR_ARG);
	REQUIRE_CLASS(MPI_File_preallocate(f, 5000), MPI_SUCCESS);
	size_is(f, 5000);
	REQUIRE_CLASS(MPI_File_preallocate(f, 10), MPI_SUCCESS); /* it never shrinks */
	size_is(f, 5000);
	REQUIRE_CLASS(MPI_File_set_size(f, 8), MPI_SUCCESS);
	MPI_File_close(&f);
	f = file_open(MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL);
	if (me == 0)
		MPI_File_write(f, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_close(&f);
	on_disk((int[]){0, 0, 1}, 12);
	f = file_open(MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
	MPI_File_close(&f);
	MPI_Barrier(MPI_COMM_WORLD);
	REQUIRE(access(path, F_OK) != 0);
}

static void what_cannot_be_opened_says_why(void **state)
{
	char folder[] = "/tmp", none[128];
	MPI_File f = file_new();

	MPI_File_close(&f);
	snprintf(none, sizeof(none), "%s.none", path);
	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, none, MPI_MODE_RDWR, MPI_INFO_NULL, &f),
		      MPI_ERR_NO_SUCH_FILE);
	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, path,
				    MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, MPI_INFO_NULL,
				    &f),
		      MPI_ERR_FILE_EXISTS);
	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &f),
		      MPI_ERR_BAD_FILE);
	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, path, me ? MPI_MODE_RDWR : MPI_MODE_RDONLY,
				    MPI_INFO_NULL, &f),
		      MPI_ERR_NOT_SAME);
	REQUIRE_CLASS(MPI_File_delete(none, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
	/* the name of the file system, as others have it */
	snprintf(none, sizeof(none), "ufs:%s", path);
	REQUIRE_CLASS(MPI_File_open(MPI_COMM_WORLD, none, MPI_MODE_RDONLY, MPI_INFO_NULL, &f),
		      MPI_SUCCESS);
	MPI_File_close(&f);
}

static int view_of(MPI_File f, MPI_Datatype etype, MPI_Datatype type, const char *representation)
{
	MPI_Type_commit(&type);
	return MPI_File_set_view(f, 0, etype, type, representation, MPI_INFO_NULL);
}

static void a_view_goes_forward_in_whole_elements(void **state)
{
	MPI_Datatype back, twice, before, byte3;
	MPI_File f = file_new();

	MPI_Type_indexed(2, (int[]){1, 1}, (int[]){4, 0}, MPI_INT, &back);
	MPI_Type_indexed(2, (int[]){2, 2}, (int[]){0, 1}, MPI_INT, &twice);
	MPI_Type_indexed(2, (int[]){1, 1}, (int[]){-1, 0}, MPI_INT, &before);
	MPI_Type_contiguous(3, MPI_BYTE, &byte3);
	REQUIRE_CLASS(view_of(f, MPI_INT, back, "native"), MPI_ERR_IO);
	REQUIRE_CLASS(view_of(f, MPI_INT, twice, "native"), MPI_ERR_IO);
	REQUIRE_CLASS(view_of(f, MPI_INT, before, "native"), MPI_ERR_IO);
	REQUIRE_CLASS(view_of(f, MPI_INT, byte3, "native"), MPI_ERR_ARG);
	REQUIRE_CLASS(view_of(f, MPI_INT, MPI_INT, "other"), MPI_ERR_UNSUPPORTED_DATAREP);
	REQUIRE_CLASS(view_of(f, me ? MPI_INT : MPI_BYTE, MPI_INT, "native"), MPI_ERR_NOT_SAME);
	MPI_File_close(&f);
	/* who only reads may see something twice */
	f = file_open(MPI_MODE_RDONLY, MPI_INFO_NULL);
	REQUIRE_CLASS(view_of(f, MPI_INT, twice, "native"), MPI_SUCCESS);
	REQUIRE_CLASS(view_of(f, MPI_INT, back, "native"), MPI_ERR_IO);
	MPI_File_close(&f);
	MPI_Type_free(&back);
	MPI_Type_free(&twice);
	MPI_Type_free(&before);
	MPI_Type_free(&byte3);
}

static void external32_is_the_same_on_all_machines(void **state)
{
	static const unsigned char wanted[] = {1, 2, 3, 4, 5, 6, 7, 8};
	static const int numbers[] = {0x01020304, 0x05060708};
	int got[3] = {0};
	long wide = 0;
	MPI_Status s;
	MPI_File f = file_new();

	REQUIRE_CLASS(view_of(f, MPI_INT, MPI_INT, "external32"), MPI_SUCCESS);
	if (me == 0)
		REQUIRE_CLASS(MPI_File_write_at(f, 0, numbers, 2, MPI_INT, &s), MPI_SUCCESS);
	on_disk(wanted, sizeof(wanted));
	REQUIRE_CLASS(MPI_File_read_at_all(f, 1, got, 2, MPI_INT, &s), MPI_SUCCESS);
	REQUIRE(got[0] == numbers[1] && got[1] == 0);
	MPI_Get_count(&s, MPI_INT, &got[2]);
	REQUIRE(got[2] == 1);
	/* a long has four bytes there */
	REQUIRE_CLASS(view_of(f, MPI_LONG, MPI_LONG, "external32"), MPI_SUCCESS);
	REQUIRE_CLASS(MPI_File_read_at(f, 1, &wide, 1, MPI_LONG, &s), MPI_SUCCESS);
	REQUIRE(wide == numbers[1]);
	MPI_File_close(&f);
}

static void atomic_transfers_are_seen_whole(void **state)
{
	enum { LENGTH = 3000 };
	static int data[LENGTH];
	MPI_File f = file_new();
	int on;

	REQUIRE_CLASS(MPI_File_set_atomicity(f, me == 0), MPI_ERR_ARG);
	MPI_File_get_atomicity(f, &on);
	REQUIRE(!on);
	REQUIRE_CLASS(MPI_File_set_atomicity(f, 1), MPI_SUCCESS);
	MPI_File_get_atomicity(f, &on);
	REQUIRE(on);
	view_of(f, MPI_INT, MPI_INT, "native");
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < LENGTH; i++)
			data[i] = me;
		REQUIRE_CLASS(MPI_File_write_at(f, 0, data, LENGTH, MPI_INT, MPI_STATUS_IGNORE),
			      MPI_SUCCESS);
		MPI_File_read_at(f, 0, data, LENGTH, MPI_INT, MPI_STATUS_IGNORE);
		for (int i = 1; i < LENGTH; i++)
			REQUIRE(data[i] == data[0]);
	}
	MPI_File_close(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_byte_goes_where_the_view_says),
	    cmocka_unit_test(where_ranks_overlap_the_last_one_wins),
	    cmocka_unit_test(the_shared_pointer_is_one_for_all),
	    cmocka_unit_test(the_size_is_what_was_asked_for),
	    cmocka_unit_test(what_cannot_be_opened_says_why),
	    cmocka_unit_test(a_view_goes_forward_in_whole_elements),
	    cmocka_unit_test(external32_is_the_same_on_all_machines),
	    cmocka_unit_test(atomic_transfers_are_seen_whole),
	};
	char folder[] = "/tmp/hale-io-XXXXXX";
	int failed;

	ranks_start(RANKS, &argc, &argv);
	if (me == 0)
		REQUIRE(mkdtemp(folder));
	MPI_Bcast(folder, sizeof(folder), MPI_CHAR, 0, MPI_COMM_WORLD);
	snprintf(path, sizeof(path), "%s/file", folder);
	failed = ranks_run(tests, sizeof(tests) / sizeof(tests[0]));
	if (me == 0) {
		unlink(path);
		rmdir(folder);
	}
	return failed;
}
