// Sums of lines of numbers, in fours, compiled for several CPUs: all give the same, to the last bit.
//
// A sum over lines is computed for all their numbers abreast; nothing is added up across a line. Lengths are in numbers
// and mean the fours that hold them: what lies behind the last number takes part.
#pragma once

#include "gdpnet/arrays.hpp"
#include "gdpnet/cpu.hpp"

namespace gdpnet {

struct Sums {
    // found = sum of share[k] * line k; lines are `stride` apart.
    void (*add_up)(const double* share, const double* lines, Index stride, Index count, double* found, Index length);

    // found = from - sum of share[k] * line[k].
    void (*take_off)(const double* from, const double* share, const double* const* line, Index count, double* found,
                     Index length);

    // to -= times * (own - sum of share[k] * line[k]).
    void (*move)(double* to, double times, const double* own, const double* share, const double* const* line, Index count,
                 Index length);

    // line k += times * share[k] * share, for `count` lines that are `stride` apart.
    void (*add_square)(double* lines, Index stride, Index count, double times, const double* share);
};

extern const Sums kBaselineSums;
extern const Sums kAvx2Sums;  // only where `built(Cpu::avx2)`

// Those of the CPU that was chosen.
const Sums& sums();

}  // namespace gdpnet
