// Derivatives of a nearest point where rows are curved.
//
// As on a face (face.hpp), the columns F that nothing holds share what the tight rows ask of them. With the tight rows'
// gradients J, curved or not, their multipliers l, and what is minimised having second derivatives D (w^2 for l2, 0 for
// l1), the point satisfies
//
//     cost(z) + J' l = 0  (on F)       a z = b,  g(z) = 0
//
// and to first order
//
//     H dz + J' dl = D dyhat - d(J') l,     J dz = db - da z - dg,         H = D + sum l_k Hess g_k
//
// where d(J') and dg are what inputs do to coefficients. The adjoint has the same matrix: `H u + J' v = gradient`,
// `J u = 0`. Then, of the arguments t = T z - b of a curve with factor w in a row with multipliers l and v, what is
// differentiated by is
//
//     - w (v f(t) + l f'(t) T u)
//
// At the apex of a norm, or where squares are at most 0, arguments are held where they are: their rows are tight.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/curves.hpp"
#include "gdpnet/given.hpp"

namespace gdpnet {

// Memory of one thread.
class CurvedFace {
public:
    // `kinks`: of an l1-nearest point, whose columns follow their prediction where they are equal to it.
    CurvedFace(const Component& component, bool kinks);

    // As Face::vjp.
    void vjp(const Given& given, Vector<const std::int8_t> assignment, Vector<const double> z, Vector<double> gradient,
             Vector<double> to_yhat, Vector<double> to_bound, Matrix<double> to_varying);

private:
    void sort_columns(const Given& given, Vector<const double> z);
    void collect_tight(const Given& given, Vector<const double> z);
    bool at_apex(Index c, Vector<const double> z) const;
    void add_tight(Index i, Index c, Vector<const double> z);
    void find_multipliers(const Given& given, Vector<const double> z);
    bool solve(Vector<const double> z, Vector<const double> gradient);
    void charge_row(Index i, double multiplier, double price, Vector<const double> z, Vector<double> to_bound,
                    Matrix<double> to_varying) const;
    void charge_arguments(Index c, double multiplier, double price, Vector<const double> z, Vector<double> to_bound,
                          Matrix<double> to_varying) const;

    const Rows& rows_;
    const Logic& logic_;
    const bool kinks_;
    Sample sample_;
    CurvedRows curved_;
    Index count_ = 0, free_count_ = 0;
    Flags enforced_, free_, follows_;
    std::vector<double> metric_;     // (n,): the inverse of the second derivatives, or 1
    std::vector<double> second_;     // (n,): D
    std::vector<Index> position_;    // (n,): of a free column, -1 for others
    std::vector<Index> tight_, place_;  // (n,): rows, and their places among curved ones, -1 for others
    Table<double> line_;             // (n, n): their gradients
    Table<double> basis_, triangle_; // (n, n): line = triangle basis over the free columns, orthonormal in the metric
    std::vector<double> multiplier_, price_, u_, row_;
    Table<double> matrix_;           // (2 n, 2 n)
    Table<double> hessian_;          // (n, n), all columns
    std::vector<double> right_;      // (2 n,)
    std::vector<Index> every_;       // (n,): 0, 1, ...
};

}  // namespace gdpnet
