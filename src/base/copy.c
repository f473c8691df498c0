/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/copy.h"

#include <stdint.h>

enum { STREAMS = 4, LINE = 64 };

typedef long long pair_t __attribute__((vector_size(16), aligned(1), may_alias));
typedef long long quad_t __attribute__((vector_size(32), aligned(1), may_alias));

/* Each: bytes of a stream. All lines of a round are read before one is written: most places of
 * source and destination are a multiple of a page apart, and a read waits for an earlier write that
 * seems to go to its address by the lower bits. */
#define COPY(name, vector, attributes)                                                             \
	attributes static void name(char *dst, const char *src, size_t each)                       \
	{                                                                                          \
		enum { WORDS = LINE / sizeof(vector) };                                            \
		for (size_t at = 0; at < each; at += LINE) {                                       \
			vector line[STREAMS][WORDS];                                               \
			for (size_t i = 0; i < STREAMS; i++)                                       \
				for (size_t w = 0; w < WORDS; w++)                                 \
					line[i][w] = ((const vector *)(src + i * each + at))[w];   \
			__asm__ volatile("" ::: "memory");                                         \
			for (size_t i = 0; i < STREAMS; i++)                                       \
				for (size_t w = 0; w < WORDS; w++)                                 \
					((vector *)(dst + i * each + at))[w] = line[i][w];         \
		}                                                                                  \
	}

COPY(copy_pairs, pair_t, __attribute__((optimize("O3"))))
#ifdef __x86_64__
COPY(copy_quads, quad_t, __attribute__((optimize("O3"), target("avx2"))))
#endif

void copy_streams(void *dst, const void *src, size_t bytes)
{
	/* Writes of whole lines cost less than reads of them. */
	size_t head = -(uintptr_t)dst % LINE, each = (bytes - head) / STREAMS / LINE * LINE;
	char *to = (char *)dst + head;
	const char *from = (const char *)src + head;
	memcpy(dst, src, head);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		copy_quads(to, from, each);
	else
#endif
		copy_pairs(to, from, each);
	size_t done = head + STREAMS * each;
	memcpy((char *)dst + done, (const char *)src + done, bytes - done);
}
