/* SPDX-License-Identifier: BSD-3-Clause */
/* Views: which bytes of the file a process sees, and where they lie. */
#include <string.h>
#include <strings.h>
#include "io/internal.h"

size_t io_pieces(const struct io_view *v, size_t at, size_t bytes, struct io_piece *out, size_t max,
		 size_t *covered)
{
	struct iovec iov[256];
	size_t total, n, left = bytes;
	if (max > ARRAY_LEN(iov))
		max = ARRAY_LEN(iov);
	*covered = 0;
	if (!bytes || !v->tile->size)
		return 0;
	size_t count = (at + bytes) / v->tile->size + 1;
	n = datatype_iov(v->tile, (void *)(uintptr_t)v->disp, count, at, iov, max, &total);
	for (size_t i = 0; i < n; i++) {
		size_t len = iov[i].iov_len < left ? iov[i].iov_len : left;
		out[i] = (struct io_piece){(uintptr_t)iov[i].iov_base, len};
		left -= len;
		*covered += len;
		if (!left)
			return i + 1;
	}
	return n;
}

MPI_Offset io_view_place(const struct io_view *v, size_t at)
{
	struct iovec iov;
	size_t bytes;
	if (!v->tile->size)
		return v->disp;
	datatype_iov(v->tile, (void *)(uintptr_t)v->disp, at / v->tile->size + 2, at, &iov, 1,
		     &bytes);
	return (MPI_Offset)(uintptr_t)iov.iov_base;
}

size_t io_view_find(const struct io_view *v, uint64_t offset, size_t low, size_t high)
{
	if (v->tile->contiguous) {
		uint64_t before = offset > (uint64_t)v->disp ? offset - (uint64_t)v->disp : 0;
		return before < low ? low : before > high ? high : (size_t)before;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((uint64_t)io_view_place(v, middle) >= offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

size_t io_view_before(const struct io_view *v, uint64_t offset)
{
	const struct datatype *t = v->tile;
	MPI_Offset rest = (MPI_Offset)offset - v->disp - t->true_lb;
	if (rest <= 0 || !t->size)
		return 0;
	size_t whole = t->extent > 0 ? (size_t)(rest / t->extent) : 0;
	return io_view_find(v, offset, whole * t->size, (whole + 2) * t->size);
}

size_t io_bytes(const struct file *f, const struct datatype *t, size_t count)
{
	return count *
	       (f->view.representation == IO_EXTERNAL32 ? signature_wire(t->elements) : t->size);
}

/* ---- making ---- */

static const char *const names[] = {"native", "internal", "external32"};

const char *io_representation_name(const struct io_view *v)
{
	return names[v->representation];
}

int io_view_init(struct io_view *v)
{
	*v = (struct io_view){
	    .etype = io_byte(), .filetype = io_byte(), .tile = io_byte(), .etype_bytes = 1};
	datatype_retain(v->etype);
	datatype_retain(v->filetype);
	datatype_retain(v->tile);
	return MPI_SUCCESS;
}

void io_view_fini(struct io_view *v)
{
	if (v->etype)
		datatype_release(v->etype);
	if (v->filetype)
		datatype_release(v->filetype);
	if (v->tile)
		datatype_release(v->tile);
	v->etype = v->filetype = v->tile = NULL;
}

/* The file type with the sizes of external32, which differ for MPI_LONG and a few others. Between
 * them it must have no holes then: how wide these would be the standard leaves open. */
static int tile_make(struct io_view *v)
{
	size_t wire = signature_wire(v->filetype->elements);
	if (v->representation != IO_EXTERNAL32 || wire == v->filetype->size) {
		v->tile = v->filetype;
		datatype_retain(v->tile);
		return MPI_SUCCESS;
	}
	if (!v->filetype->contiguous) {
		log_warn("a view in external32 has a file type with holes and with elements that "
			 "have another size there (MPI_LONG, MPI_WCHAR): use MPI_INT64_T instead");
		return MPI_ERR_UNSUPPORTED_DATAREP;
	}
	v->tile = datatype_make_vector(io_byte(), 1, wire, 0);
	return v->tile ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Each byte lies behind the one before it. */
static bool layout_ascends(struct layout_ref r)
{
	const struct layout *l = r.node;
	if (!l)
		return true;
	if (l->kind == LAYOUT_LOOP) {
		struct layout_ref child = {0, l->child_size, l->child};
		ptrdiff_t span =
		    l->child ? l->child->high - l->child->low : (ptrdiff_t)l->child_size;
		return l->stride >= span && layout_ascends(child);
	}
	ptrdiff_t end = PTRDIFF_MIN;
	for (size_t i = 0; i < l->count; i++) {
		const struct layout_part *p = &l->parts[i];
		struct layout_ref part = {p->offset, p[1].start - p->start, p->node};
		ptrdiff_t low, high;
		layout_range(part, &low, &high);
		if (low < end || !layout_ascends(part))
			return false;
		end = high;
	}
	return true;
}

/* MPI-3.1 13.1.1: displacements are not negative, and never decrease; what is written doesn't
 * overlap. *ordered: nor does anything else. */
static int type_fits(const struct datatype *t, bool writes, bool *ordered)
{
	struct iovec iov[256];
	uintptr_t begin = 0, end = 0;
	if (!t->size || (t->true_lb >= 0 && layout_ascends(t->data)))
		return MPI_SUCCESS;
	if (t->true_lb < 0)
		return MPI_ERR_IO;
	*ordered = false;
	for (size_t at = 0, bytes; at < t->size; at += bytes) {
		size_t n = datatype_iov(t, NULL, 1, at, iov, ARRAY_LEN(iov), &bytes);
		for (size_t i = 0; i < n; i++) {
			uintptr_t from = (uintptr_t)iov[i].iov_base;
			if (from < begin || (writes && from < end))
				return MPI_ERR_IO;
			begin = from;
			end = from + iov[i].iov_len > end ? from + iov[i].iov_len : end;
		}
	}
	return MPI_SUCCESS;
}

static int view_make(const struct file *f, struct io_view *v, MPI_Offset disp,
		     const char *representation)
{
	const struct datatype *t = v->filetype;
	bool writes = !(f->amode & MPI_MODE_RDONLY);
	size_t i = 0;
	while (i < ARRAY_LEN(names) && strcasecmp(names[i], representation))
		i++;
	if (i == ARRAY_LEN(names))
		return MPI_ERR_UNSUPPORTED_DATAREP;
	v->representation = (uint8_t)i;
	v->etype_bytes = i == IO_EXTERNAL32 ? signature_wire(v->etype->elements) : v->etype->size;
	v->disp = disp;
	v->ordered = t->extent >= t->true_extent;
	if (!v->etype->size || t->size % v->etype->size || t->extent < 0 || v->disp < 0)
		return MPI_ERR_ARG;
	int rc = type_fits(v->etype, writes, &v->ordered);
	if (!rc)
		rc = type_fits(t, writes, &v->ordered);
	return rc ? rc : tile_make(v);
}

int io_set_view(struct file *f, MPI_Offset disp, struct datatype *etype, struct datatype *filetype,
		const char *representation, int error)
{
	if (error)
		return io_agree_same(f, 0, MPI_SUCCESS, error);
	struct io_view v = {.etype = etype, .filetype = filetype};
	uint64_t size = v.etype->size;
	int rc = MPI_SUCCESS;
	datatype_retain(etype);
	datatype_retain(filetype);
	if (disp == MPI_DISPLACEMENT_CURRENT) {
		uint64_t at = 0;
		rc = f->amode & MPI_MODE_SEQUENTIAL ? io_shared_add(f, 0, &at) : MPI_ERR_ARG;
		disp = rc ? 0 : io_view_place(&f->view, at);
	}
	if (!rc)
		rc = view_make(f, &v, disp, representation);
	rc = io_agree_same(f, size, MPI_ERR_NOT_SAME, rc);
	if (rc) {
		io_view_fini(&v);
		return rc;
	}
	io_view_fini(&f->view);
	f->view = v;
	f->position = 0;
	return io_shared_set(f, 0);
}
