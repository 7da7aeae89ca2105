// A part of a relaxation, whose regularised program is solved and differentiated for batches.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "gdpnet/blocks/shape.hpp"
#include "gdpnet/component.hpp"
#include "gdpnet/threads.hpp"

namespace gdpnet::blocks {

// The arrays behind a `Shape`, with the same names.
struct Arrays {
    Index outputs = 0;
    Index auxiliaries = 0;
    std::vector<Index> columns;
    std::vector<double> lower, upper;
    std::vector<Index> source, varying;
    std::vector<double> shared;
    std::vector<Index> first_copy, first_place, row;
    Flags equality;
    std::vector<Index> start, entry;
};

// Memory of one thread, where a line of the cache begins: reading across two takes longer.
class Workspace {
public:
    explicit Workspace(Index numbers);
    ~Workspace();
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    double* data() const { return data_; }
    Index numbers() const { return numbers_; }

private:
    double* data_;
    Index numbers_;
};

class Part {
public:
    explicit Part(Arrays arrays);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    const Shape& shape() const { return shape_; }
    Index path_width() const { return 2 * (shape_.copies * shape_.width + shape_.places); }

    // Solves the part of some samples; several threads may call it.
    void solve(const Batch& batch, Points points, Threads threads, Call& call);

    // Adds the gradients of those samples.
    void vjp(const Batch& batch, Adjoints adjoints, Threads threads, Call& call);

private:
    template <class Work>
    void over(const Batch& batch, Threads threads, Call& call, Work work);

    Arrays arrays_;
    Shape shape_;
    Pool<Workspace> pool_;
};

}  // namespace gdpnet::blocks
