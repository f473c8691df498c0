/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers printed in the seed documents, for the tests: what a formula of ours must give. */
#ifndef HALE_MODEL_PUBLISHED_H
#define HALE_MODEL_PUBLISHED_H

/* 000 Table 3.2 */
static const struct {
	const char *program;
	double time_s, alpha, f_send, f_recv, beta, real_2x_s, model_2x_s;
} table_3_2[] = {
    {"CG 1024 D", 22.75, .5351, .6755, .3092, .1654, 25.5, 26.52},
    {"CG 2048 D", 13.85, .6507, .6027, .3725, .2423, 16.38, 17.21},
    {"CG 1024 E", 232.62, .2985, .8012, .196, .0585, 242.62, 246.23},
    {"CG 2048 E", 109.04, .4657, .6967, .2987, .1391, 119.36, 124.21},
    {"LU 1024 D", 30.28, .3298, .2159, .7553, .0712, 33.79, 32.43},
    {"LU 2048 D", 26.55, .4621, .1857, .7702, .0858, 30.42, 28.83},
    {"LU 1024 E", 376.80, .1131, .1979, .7942, .0223, 394.28, 385.24},
    {"LU 2048 E", 206.08, .1738, .1887, .7992, .0327, 222.39, 212.84},
    {"MG 1024 D", 2.28, .3357, .4332, .317, .1064, 2.59, 2.52},
    {"MG 2048 D", 1.45, .5116, .3055, .3594, .1562, 1.76, 1.67},
    {"MG 1024 E", 17.18, .1458, .4903, .4162, .0606, 17.77, 18.22},
    {"MG 2048 E", 9.06, .2342, .3884, .462, .0909, 9.65, 9.88},
    {"S3D 1024 100x40x400", 28.06, .286, .1139, .7345, .0325, 28.81, 28.97},
    {"S3D 2048 100x40x400", 35.39, .3592, .1054, .6893, .0378, 35.99, 36.73},
    {"S3D 1024 320x40x400", 88.04, .2821, .1036, .7217, .0292, 89.74, 90.61},
    {"S3D 2048 320x40x400", 117.81, .3742, .1289, .6804, .0482, 121.39, 123.49},
    {"LULESH 1000 25", 270.82, .2855, .679, .599, .171, 288.20, 275.45},
    {"LULESH 1728 25", 328.34, .2885, .72, .631, .182, 350.07, 334.32},
    {"LULESH 1000 27", 351.39, .244, .669, .576, .140, 371.63, 356.33},
    {"LULESH 1728 27", 448.60, .2533, .719, .689, .174, 468.89, 456.43},
};

/* 000 Table 3.4: spare nodes at beta 0.2, 0.4, 0.6, without repair; one column with */
static const struct {
	double nodes, spares[3], repaired;
} table_3_4[] = {
    {16000, {18, 21, 24}, 2},	   {32000, {36, 42, 48}, 3},	  {64000, {74, 86, 99}, 7},
    {128000, {156, 182, 208}, 13}, {256000, {349, 407, 465}, 25},
};

/* 003 Table 4; 20 MW, 200 W per socket */
static const struct {
	double overhead, replication, replication_main, stretched, stretched_main, shadowing,
	    shadowing_main;
} table_4[] = {
    {0.60, 100000, 50000, 153846, 76923, 124998, 62499},
    {0.80, 100000, 50000, 120230, 60115, 110636, 55318},
};

/* 003 Table 2, bytes per second */
static const double table_2[] = {5.42e7, 2.58e6, 2.16e6, 9.66e5, 7.43e5};

/* 002 Tables 5 and 6, section 8.2: coverage, checkpoint time, cost of the task level */
static const struct {
	const char *program;
	double coverage, ckpt_s, task_waste;
} benchmarks[] = {
    {"mxm", 0.98, 1.92, 0.0445},
    {"nbody", 0.73, 40.44, 0.0031},
    {"himeno", 0.86, 45.79, 0.0089},
};

#endif
