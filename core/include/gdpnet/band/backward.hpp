// The derivative of the regularised quadratic program, on the pieces that hold its solution.
//
// With `z_k = lambda_k z'_k` the copies, s their signs, and H the quadratic term's diagonal (2 eps for
// outputs, eps for auxiliaries), the solution satisfies, for every product with weight,
//
//     H z_k + w s + A' nu = 0      on the free columns
//     A z_k = lambda_k b'          with b' = b - A yhat; columns at a bound: z_k = lambda_k (u - yhat)
//
// and the prices of the weights agree. The adjoint of these equations has the same matrix, so one
// small system a product gives p_k, q_k (the adjoints of z_k and nu) up to a multiple of the direction
// z1 in which z_k grows with lambda_k, and one scalar m joins the products:
//
//     p_k = p0_k + pi_k z1_k,   pi_k = (m - gradient . z1_k) / slope_k,   sum pi_k = 0
//
// A product's price stands in the last of these equations alone: the loss's gradient with respect to it is pi_k.
//
// With as many rows as free columns p0 = 0 and z1 = z', and `tau = pi nu + lambda q`, all that is
// needed then, comes from the rows alone. A singular system (rows that depend on each other) is
// solved with its dependent unknowns at 0.
#pragma once

#include "gdpnet/band/products.hpp"
#include "gdpnet/component.hpp"

namespace gdpnet::band {

// What the derivative of a sample is taken of, and where it goes.
struct Pull {
    Matrix<const double> varying;   // (k, n)
    Vector<const double> bound;     // (m,)
    Vector<const double> yhat;      // (outputs,)
    Vector<const double> gradient;  // of the loss with respect to y, (outputs,)
    Vector<double> to_yhat;         // begins as `gradient`
    Vector<double> to_bound;        // begins as 0, like the next
    Matrix<double> to_varying;
    Vector<double> to_price{};      // (priced,), begins as 0
};

// One thread's memory, and the derivative of one sample after the other.
class Adjoint {
public:
    explicit Adjoint(const Rows& rows);

    void sample(const Band& band, Index s, Vector<const double> weights, double eps, const Pull& pull);

private:
    struct Piece;  // a product of the band

    Index read_columns(const Piece& piece, Vector<const double> weights);
    Index read_rows(const Piece& piece, Matrix<const double> varying);
    void solve_piece(const Piece& piece, double eps, const Pull& pull, Index rows, Index frees);
    void add_vertex(const Piece& piece, double eps, double pi, const Pull& pull, Index rows);
    void add_piece(const Piece& piece, double eps, double pi, const Pull& pull, Index rows, Index frees);
    void eliminate(Index size, Index sides);

    const Rows& rows_;
    Table<double> matrix_;        // (2 n, 2 n)
    Table<double> right_;         // (2 n, 3): adjoint of the loss, prices w s, growth with the weight
    Table<double> dense_;         // (n, n): tight rows, scaled
    std::vector<double> unit_;    // (n,): by which they were scaled
    std::vector<Index> free_;     // (n,): free columns
    std::vector<double> sign_;    // (n,): w s
    std::vector<double> grow_;    // (n,): z1
    std::vector<double> point_;   // (n,): z
    std::vector<double> adjoint_; // (n,): p
    std::vector<double> rate_;    // of the loss with each weight
};

}  // namespace gdpnet::band
