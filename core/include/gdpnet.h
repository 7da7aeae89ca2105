/* The search for other languages: a problem in, a point out. C99.
 *
 *     minimise    sum weight_j |z_j - yhat_j|       over the first `outputs` columns
 *     subject to  lower <= z <= upper, the global rows,
 *                 for each disjunction: all rows of at least one of its disjuncts
 *
 * Row i is `sum coefficient[e] * z[column[e]] <= bound[i]` (== where equality[i] is not 0), e from row_start[i] up to
 * row_start[i + 1]. Lists are compressed in the same way: disjunction c has the disjuncts from disjunction_start[c] up
 * to disjunction_start[c + 1], disjunct k the rows disjunct_row[disjunct_start[k]] up to, without it,
 * disjunct_row[disjunct_start[k + 1]]. What a Python user writes beyond that (inputs, conditions, nested rules, logic)
 * is brought to this form by the caller.
 *
 * The functions are those of the Python module's library. They keep nothing, and may be called from several threads. */
#ifndef GDPNET_H
#define GDPNET_H

#include <stdint.h>

#if defined(_WIN32)
#define GDPNET_API __declspec(dllexport)
#else
#define GDPNET_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int64_t columns, outputs, rows, global_count, disjunctions;
    const double *lower, *upper;     /* (columns) */
    const uint8_t *integer;          /* (columns): whether only whole numbers are allowed; may be NULL */
    const int64_t *row_start;        /* (rows + 1) */
    const int64_t *column;           /* (entries) */
    const double *coefficient;       /* (entries) */
    const double *bound;             /* (rows) */
    const uint8_t *equality;         /* (rows) */
    const int64_t *global_row;       /* (global_count): rows that always hold */
    const int64_t *disjunction_start; /* (disjunctions + 1) */
    const int64_t *disjunct_start;   /* (disjuncts + 1) */
    const int64_t *disjunct_row;     /* rows of the disjuncts */
} gdpnet_problem;

typedef enum {
    GDPNET_NEAREST = 0,   /* z is proved nearest */
    GDPNET_CONFLICT = 1,  /* no point satisfies everything */
    GDPNET_LIMIT = 2,     /* so many nodes did not suffice; z is the best point found, NaN where there is none */
    GDPNET_TROUBLE = 3,   /* arithmetic failed */
    GDPNET_SATISFIED = 4, /* yhat satisfies everything */
    GDPNET_BAD_PROBLEM = -1
} gdpnet_status;

/* Writes the nearest point, (columns), and its distance. `weights` (outputs) may be NULL: 1 each. */
GDPNET_API int gdpnet_nearest(const gdpnet_problem *problem, const double *yhat, const double *weights,
                              int64_t node_limit, double *z, double *distance);

#ifdef __cplusplus
}
#endif

#endif
