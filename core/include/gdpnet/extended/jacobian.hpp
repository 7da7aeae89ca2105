// Derivatives of the vertex, read off the final basis.
//
// The columns that are not 0 solve as many tight rows of the program. Its matrix and right sides
// depend on the prediction, the right sides and the coefficients of the rules, so that the gradient
// of a loss needs one transposed system a sample: with mu its solution, a tight row
//
//     a_i u_k <= weight_k (b_i - a_i yhat)
//
// adds mu weight_k to the gradient of b_i, and - mu (u_k + weight_k yhat) to that of a_i.
#pragma once

#include "gdpnet/extended/program.hpp"

namespace gdpnet::extended {

// A basis of a part that was kept.
struct PartBasis {
    const std::int8_t* state;
    const std::int32_t* rank;
    Index size;
    const std::int32_t* column;
    const std::int32_t* row;
    const double* value;
};

// Gradients of one sample, added to.
struct SampleGradients {
    Vector<double> start;
    Vector<double> bound;
    Matrix<double> varying;
};

// Adds to the gradients what the tight rows of a part say; the part is loaded.
void vjp_part(const Sources& sources, const Part& part, Workspace& work, const PartBasis& basis,
              Vector<const double> gradient, const SampleGradients& found);

}  // namespace gdpnet::extended
