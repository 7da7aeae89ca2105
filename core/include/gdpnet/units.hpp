// A sample's rows and bounds as a quadratic program wants them: relative to the prediction, in units of
// a distance, so that the program's numbers are about 1 whatever those of the rules are.
#pragma once

#include <vector>

#include "gdpnet/quadratic.hpp"

namespace gdpnet {

// Before they are brought to the units of the program: z = origin + unit * x.
struct Units {
    explicit Units(const Rows& rows);

    // Writes a sample's rows in both units. `auxiliaries`: a point of n columns, where auxiliaries have their origin.
    void load(Quadratic& q, const Rows& rows, Matrix<const double> varying, Vector<const double> bound,
              Vector<const double> yhat, Vector<const double> weights, Vector<const double> auxiliaries,
              double distance);

    // The same in steps: rows of the sample, scaled; then those of the program, from origin and unit.
    void load_rows(const Quadratic& q, const Rows& rows, Matrix<const double> varying, Vector<const double> bound);
    void convert_rows(Quadratic& q) const;
    void convert_row(Quadratic& q, Index i) const;

    // Bounds of z in the units of the program; a bound at the prediction is exactly 0.
    void convert_bounds(Quadratic& q) const;

    // Writes z; what is fixed gets its value exactly.
    void read_point(const Quadratic& q);

    // How far row i is above its right side at z; absolute for an equality.
    double excess(const Quadratic& q, Index i) const;

    // Whether row i holds at z.
    bool row_holds(const Quadratic& q, Index i) const;

    // Whether all enforced rows hold at z.
    bool enforced_rows_hold(const Quadratic& q) const;

    std::vector<double> coefficient;   // (entries,): scaled by powers of two
    std::vector<double> rhs;           // (m,)
    std::vector<double> origin, unit;  // (n,)
    std::vector<double> lower, upper;  // (n,): of z at the node
    std::vector<double> z;             // (n,)
};

}  // namespace gdpnet
