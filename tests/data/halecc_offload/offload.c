#include <stdio.h>
#include <stdlib.h>

struct point {
	double x, y;
};

enum { WIDE = 600 };
static double table[WIDE];
static const double unit = 0.5;
static int calls;

static double half(double x)
{
	calls++;
	return x * unit + table[0];
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	double *a = malloc((size_t)n * sizeof(*a)), sum = 0, *b = calloc((size_t)n, sizeof(*b));
	struct point p = {1, 2};
	const int twice = 2;
	double square[3][4] = {{0}};

	for (int i = 0; i < n; i++)
		a[i] = i;
	table[0] = 0.25;
#pragma offload target(hale:0) in(a[0:n]) \
    inout(b[10:n - 20])
	for (int i = 10; i < n - 10; i++) {
		if (i % 7 == 0)
			continue;
		b[i] += twice * half(a[i]);
		sum += b[i];
		p.x += 1;
	}
#pragma offload target(hale:n % 2) out(square) inout(table[1:WIDE - 1])
	{
		for (int i = 0; i < 3; i++)
			for (int k = 0; k < 4; k++)
				square[i][k] = i * (int)(sizeof(square[0]) / sizeof(square[0][0])) + k;
		for (int i = 2; i < WIDE; i++)
			table[i] = table[i - 1] + square[2][3];
	}
	printf("%.6f %.6f %.6f %d %.6f %.6f line %d\n", sum, p.x, b[n / 2], calls, square[2][3], table[WIDE - 1], __LINE__);
	return 0;
}
