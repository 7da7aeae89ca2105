// Batches of predictions and what is written about them, with the shapes that a component asks for.
#pragma once

#include "bind/tuples.hpp"
#include "gdpnet/component.hpp"
#include "gdpnet/exact.hpp"

namespace gdpnet::bind {

using Bools = Array<const bool, 2>;
using Numbers = Array<const double, 2>;
using Coefficients = Array<const double, 3>;
using Weights = Array<const double, 1>;

inline Batch batch_of(const Component& component, const Bools& active, const Coefficients& varying, const Numbers& bound,
               const Numbers& yhat, const Weights& weights) {
    const Rows& rows = component.rows;
    const Index size = yhat.extent(0);
    expect(active.extent(0) == size && active.extent(1) == component.logic.clauses(), "active: (batch, clauses)");
    expect(varying.extent(0) == size && varying.extent(1) == Index(rows.varying.size()) &&
               (varying.extent(1) == 0 || varying.extent(2) == rows.columns()),
           "varying: (batch, varying rows, columns)");
    expect(bound.extent(0) == size && bound.extent(1) == rows.given(), "bound: (batch, rows)");
    expect(yhat.extent(1) == rows.outputs && weights.extent(0) == rows.outputs, "yhat: (batch, outputs); weights: (outputs,)");
    return {active, varying, bound, yhat, weights};
}

// The same with prices, (batch, priced).
inline Batch priced_batch_of(const Component& component, Batch batch, const Numbers& price, double price_unit) {
    expect(price.extent(0) == batch.size() && price.extent(1) == Index(component.logic.priced.size()), "price: (batch, priced)");
    batch.price = price;
    batch.price_unit = price_unit;
    return batch;
}

// Lets rules be left out, where some may.
inline void leave(Batch& batch, const SetsOfBatch* sets) {
    expect(sets == nullptr || Index(sets->pattern.size()) == batch.size(), "leaving: of the same batch");
    batch.leaving = sets;
}

// The arrays of an `Output`.
struct AnswerArrays {
    Array<double, 2> z;
    Array<double, 1> distance, bound;
    Array<std::int8_t, 1> status;
    Array<std::int8_t, 2> assignment;
    Array<Index, 1> nodes;

    explicit AnswerArrays(nanobind::handle from)
        : z(entry<double, 2>(from, 0)),
          distance(entry<double, 1>(from, 1)),
          bound(entry<double, 1>(from, 2)),
          status(entry<std::int8_t, 1>(from, 3)),
          assignment(entry<std::int8_t, 2>(from, 4)),
          nodes(entry<Index, 1>(from, 5)) {}

    Answers views(const Component& component, Index size) const {
        expect(z.extent(0) == size && z.extent(1) == component.rows.columns() && distance.extent(0) == size &&
                   bound.extent(0) == size && status.extent(0) == size && assignment.extent(0) == size &&
                   assignment.extent(1) == component.logic.booleans() && nodes.extent(0) == size,
               "out: arrays of the batch's size");
        return {z, distance, bound, status, assignment, nodes};
    }
};

}  // namespace gdpnet::bind
