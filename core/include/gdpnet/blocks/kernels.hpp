// The interior-point method compiled for several CPUs: one table of functions for each.
//
// N is the width of their vectors: two numbers everywhere, four with AVX2, eight with AVX-512. How
// many samples advance together changes no answer, so that all of them give the same, to the last bit.
#pragma once

#include "gdpnet/blocks/shape.hpp"
#include "gdpnet/cpu.hpp"

namespace gdpnet::blocks {

struct Kernels {
    Index lanes;
    Index (*vectors)(const Shape& shape);  // memory of a thread, in vectors of so many lanes
    void (*solve)(const Shape& shape, const Batch& batch, Index first, Index last, Points points, double* memory,
                  Stop stop);
    void (*vjp)(const Shape& shape, const Batch& batch, Index first, Index last, Adjoints adjoints, double* memory,
                Stop stop);
};

extern const Kernels kBaseline;
extern const Kernels kAvx2;    // only where `built(Cpu::avx2)`
extern const Kernels kAvx512;  // only where `built(Cpu::avx512)`

// Those of the CPU that was chosen.
const Kernels& kernels();

}  // namespace gdpnet::blocks
