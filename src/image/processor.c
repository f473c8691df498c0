// SPDX-License-Identifier: BSD-3-Clause
/* Which features of the processor a program may have chosen at its start. libc, libm and OpenBLAS
 * choose functions by them once, and a program asks once, too: an image of it runs only where all
 * of them are. They stand in image_header.xfeatures, above the bits of XCR0.
 *
 * `hale run --cpu-baseline` hides some (HALE_CPU_BASELINE, and what these libraries read). */
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "image/engine.h"

enum { EBX = 1, ECX, EDX, EAX = 0, FIRST_BIT = 32 };

/* Their bits in images follow this order: new ones come at the end, below bit 62. level: the
 * x86-64-v of the psABI that has it; 5: none. */
static const struct processor_feature {
	const char *name;
	uint32_t leaf, subleaf, reg, bit, level;
} features[] = {{"AVX", 1, 0, ECX, 28, 3},
		{"AVX2", 7, 0, EBX, 5, 3},
		{"FMA", 1, 0, ECX, 12, 3},
		{"BMI1", 7, 0, EBX, 3, 3},
		{"BMI2", 7, 0, EBX, 8, 3},
		{"LZCNT", 0x80000001, 0, ECX, 5, 3},
		{"MOVBE", 1, 0, ECX, 22, 3},
		{"F16C", 1, 0, ECX, 29, 3},
		{"AVX512F", 7, 0, EBX, 16, 4},
		{"AVX512DQ", 7, 0, EBX, 17, 4},
		{"AVX512CD", 7, 0, EBX, 28, 4},
		{"AVX512BW", 7, 0, EBX, 30, 4},
		{"AVX512VL", 7, 0, EBX, 31, 4},
		{"AVX512_VBMI", 7, 0, ECX, 1, 5},
		{"AVX512_VBMI2", 7, 0, ECX, 6, 5},
		{"GFNI", 7, 0, ECX, 8, 5},
		{"VAES", 7, 0, ECX, 9, 5},
		{"VPCLMULQDQ", 7, 0, ECX, 10, 5},
		{"AVX512_VNNI", 7, 0, ECX, 11, 5},
		{"AVX512_BITALG", 7, 0, ECX, 12, 5},
		{"AVX512_VPOPCNTDQ", 7, 0, ECX, 14, 5},
		{"RTM", 7, 0, EBX, 11, 5},
		{"SSE4_2", 1, 0, ECX, 20, 2},
		{"AVX_VNNI", 7, 1, EAX, 4, 5},
		{"AVX512_FP16", 7, 0, EDX, 23, 5},
		{"AMX_TILE", 7, 0, EDX, 24, 5},
		{"AVX512_BF16", 7, 1, EAX, 5, 5}};
_Static_assert(FIRST_BIT + ARRAY_LEN(features) < 62, "they share a word with XCR0");

static void ask(uint32_t leaf, uint32_t subleaf, uint32_t reg[4])
{
	__asm__ volatile("cpuid"
			 : "=a"(reg[0]), "=b"(reg[1]), "=c"(reg[2]), "=d"(reg[3])
			 : "a"(leaf), "c"(subleaf));
}

/* The names between commas. */
static uint64_t named(const char *list)
{
	uint64_t bits = 0;
	for (size_t i = 0; list && i < ARRAY_LEN(features); i++) {
		size_t n = strlen(features[i].name);
		for (const char *at = list; (at = strstr(at, features[i].name)); at += n)
			if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
				bits |= 1ull << (FIRST_BIT + i);
	}
	return bits;
}

uint64_t processor_features(void)
{
	uint64_t bits = 0;
	uint32_t reg[4], most[4], extended[4];
	ask(0, 0, most);
	ask(0x80000000, 0, extended);
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		const struct processor_feature *f = &features[i];
		if (f->leaf > (f->leaf & 0x80000000 ? extended[0] : most[0]))
			continue;
		ask(f->leaf, f->subleaf, reg);
		if (reg[f->reg] & 1u << f->bit)
			bits |= 1ull << (FIRST_BIT + i);
	}
	/* to try what happens on a processor that lacks some */
	return bits & ~named(getenv("HALE_CPU_LACKS"));
}

uint64_t processor_chosen(void)
{
	const char *text = getenv("HALE_CPU_BASELINE");
	uint32_t level =
	    text && *text >= '1' && *text <= '4' && !text[1] ? (uint32_t)(*text - '0') : 5;
	uint64_t bits = processor_features();
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		if (features[i].level > level)
			bits &= ~(1ull << (FIRST_BIT + i));
	return bits;
}

size_t processor_names(uint64_t bits, char *text, size_t cap)
{
	size_t len = 0;
	*text = 0;
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		if (bits & 1ull << (FIRST_BIT + i) && len + 24 < cap)
			len += fmt_print(text + len, cap - len, "%s%s", len ? ", " : "",
					 features[i].name);
	return len;
}
