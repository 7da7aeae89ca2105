// Derivatives of a point that is nearest in l2 within a face: of Euclidean projections, and of the
// least-norm point of the l1-nearest set.
//
// Such a point does not rest on as many rows as it has columns. Its columns F that are on no bound and are
// no whole numbers (of a least-norm point: that left their prediction, too) share what the tight rows A ask
// of them: it is the solution of
//
//     minimise  1/2 sum_F w^2 (y - yhat)^2   subject to  A z = b,
//
// so with D = w^2 and multipliers l, `D (y - yhat) + A' l = 0` on F, and to first order
//
//     D dy + A' dl = D dyhat - dA' l         (on F)
//     A dy = db - dA z
//
// The adjoint of these equations has the same matrix: u and v with `D u + A' v = g`, `A u = 0` on F. Rows
// that depend on others change nothing, and auxiliaries, which cost nothing, get a small D.
//
// The equations hold nearby wherever the same rows stay tight. In the nearest set of l1 a row without a
// price may tilt: the point slides along it. One with a price may not, unless the prices can follow: tilted
// by any little it leaves one of the equally near points the nearest, and the point jumps. There is no
// derivative at such an x; what is reported keeps all tight rows satisfied, as everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/given.hpp"

namespace gdpnet {

// Takes from line `count` of a basis its shares of the lines before it, which are orthonormal in a metric, and makes
// it 1 long. The shares go into line `count` of the triangle. False if nothing is left: the line depends on them.
bool make_orthonormal(Table<double>& basis, Table<double>& triangle, Index count, Vector<const double> metric);

// Memory of one thread.
class Face {
public:
    // `kinks`: whether a column that is where its prediction is follows it whatever the rows say, as in l1.
    Face(const Component& component, bool kinks);

    // Adds the gradients of one sample to zeros. `gradient` is that of its columns, (n,), and is overwritten.
    // Nothing is asked of `given.active`.
    void vjp(const Given& given, Vector<const std::int8_t> assignment, Vector<const double> z,
             Vector<double> gradient, Vector<double> to_yhat, Vector<double> to_bound, Matrix<double> to_varying);

private:
    void read_row(const Given& given, Index i);
    void collect_tight(const Given& given, Vector<const double> z);
    bool rests_freely(Index j, const Given& given, Vector<const double> z) const;
    void solve_transposed(std::vector<double>& right) const;

    const Rows& rows_;
    const Logic& logic_;
    const bool kinks_;
    Index count_ = 0;                // of independent tight rows
    Flags enforced_, free_, follows_;
    std::vector<double> inverse_;    // (n,): of D
    std::vector<double> row_;        // (n,)
    Table<double> dense_;            // (n, n): independent tight rows
    Table<double> basis_;            // the same over the free columns, orthonormal in the metric of `inverse_`
    Table<double> triangle_;         // dense = triangle basis
    std::vector<Index> tight_;       // which rows they are
    std::vector<double> right_, multiplier_;
};

}  // namespace gdpnet
