// CNF and partial DNF of one rule model, for the layouts met so far: batches of samples.
#pragma once

#include "gdpnet/extended/part.hpp"
#include "gdpnet/threads.hpp"

namespace gdpnet::extended {

constexpr std::int32_t kNoBlock = -2;

// What is solved. All arrays by sample.
struct Batch {
    Vector<const Index> layout;    // place in the tables, (B,)
    Matrix<const double> bound;    // right sides, (B, m)
    Tensor<const double> varying;  // coefficients that depend on x, (B, k, n)
    Matrix<const double> start;    // predictions within the bounds, (B, d)
    Vector<const double> weights;  // (d,), of all samples
    Matrix<const double> price;    // of the products of the sample's layout, (B, products), (B, 0) where all are 0

    Index size() const { return Index(layout.size()); }
    Sample operator[](Index s) const { return {start[s], weights, bound[s], varying[s], price[s]}; }
};

// What was found.
struct Output {
    Matrix<double> y;              // NaN where there is no point, (B, d)
    Vector<double> value;          // inf where there is no point, of what failed a lower bound, (B,)
    Vector<std::int8_t> outcome;   // of `Outcome`, (B,)
    Matrix<double> weight;         // of the products of the sample's layout, (B, products)
    // The first product of each block that y satisfies, -1 if none, kNoBlock beyond the number of blocks, (B, blocks).
    Matrix<std::int32_t> product;
};

// The final bases; those of a sample's parts stand one behind the other. Without lines where nobody asks for them.
template <class Byte, class Number, class Count, class Real>
struct BasesOf {
    Matrix<Byte> state;    // what the products are in the final program, (B, products)
    Matrix<Number> rank;   // places of the blocks in the final program, 0 for those it has not, (B, blocks)
    Matrix<Count> size;    // columns that are not 0, by part, (B, parts)
    Matrix<Number> column; // those columns of the program, (B, basis)
    Matrix<Number> row;    // as many tight rows of the program, (B, basis)
    Matrix<Real> value;    // of those columns, (B, basis)
};
using Bases = BasesOf<std::int8_t, std::int32_t, Index, double>;
using ConstBases = BasesOf<const std::int8_t, const std::int32_t, const Index, const double>;

// Gradients of a loss, added to.
struct Gradients {
    Matrix<double> start;    // (B, d)
    Matrix<double> bound;    // (B, m)
    Tensor<double> varying;  // (B, k, n)
};

class Engine {
public:
    Engine(Sources sources, Tables tables, Extent extent);

    // Solves a batch. A row holds at a point, for `Output::product`, within a tolerance.
    void solve(const Batch& batch, double tolerance, Threads threads, Call& call, const Output& output,
               const Bases& bases);

    // Adds to the gradients what the tight rows of every sample say.
    void vjp(const Batch& batch, Threads threads, Call& call, Vector<const std::int8_t> outcome,
             const ConstBases& bases, Matrix<const double> gradient, const Gradients& found);

private:
    template <class Work>
    void in_workspaces(Index size, Threads threads, Call& call, Work work);

    void solve_sample(const Batch& batch, Index s, double tolerance, const Output& output, const Bases& bases,
                      Workspace& work, Watch& watch) const;
    void vjp_sample(const Batch& batch, Index s, const ConstBases& bases, Vector<const double> gradient,
                    const Gradients& found, Workspace& work) const;

    const Sources sources_;
    const Tables tables_;
    const Extent extent_;
    Pool<Workspace> pool_;
};

}  // namespace gdpnet::extended
