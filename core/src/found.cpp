#include "gdpnet/found.hpp"

namespace gdpnet {

Found::Found(const Tape& tape, const Component& component, Index size, bool detailed)
    : active(size, tape.clauses()),
      right(size, Index(tape.bound.size())),
      varying(size, tape.varying.lines * tape.varying.width),
      price(size, Index(tape.price.size())),
      distance(size, 1),
      bound(size, 1),
      status(size, 1),
      assignment(size, component.logic.booleans()),
      nodes(size, 1),
      columns(component.rows.columns()),
      detailed(detailed) {
    if (!detailed) return;
    column_state = {size, columns};
    column_source = {size, columns};
    tight_rows = {size, columns};
    multipliers = {size, columns};
    reduced_costs = {size, columns};
}

Tensor<double> Found::coefficients() const {
    return {varying.values.get(), varying.lines, columns == 0 ? 0 : varying.width / columns, columns};
}

Answers Found::answers(Matrix<double> z) const { return {z, distance, bound, status, assignment, nodes}; }

Dictionaries Found::dictionaries() const { return {column_state, column_source, tight_rows, multipliers, reduced_costs}; }

template <class AnySearch>
bool find(const Tape& tape, AnySearch& search, Matrix<const double> x, Matrix<const double> yhat,
          Vector<const double> weights, double price_unit, const Limits& limits, Threads threads, Call& call,
          Matrix<double> z, Found& found) {
    if (!tape.instantiate(x, found.active, found.right, found.coefficients(), found.price)) return false;
    const Matrix<const bool> active = Matrix<bool>(found.active);
    const Matrix<const double> right = Matrix<double>(found.right);
    const Matrix<const double> price = Matrix<double>(found.price);
    const Batch batch{active, found.coefficients(), right, yhat, weights, price, price_unit};
    const Answers answers = found.answers(z);
    if constexpr (std::is_same_v<AnySearch, Search>) {
        const Dictionaries dictionaries = found.dictionaries();
        search.project(batch, limits, answers, found.detailed ? &dictionaries : nullptr, threads, call);
    } else {
        search.project(batch, limits, answers, threads, call);
    }
    found.proved = all_proved(answers);
    return true;
}

template bool find(const Tape&, Search&, Matrix<const double>, Matrix<const double>, Vector<const double>, double,
                   const Limits&, Threads, Call&, Matrix<double>, Found&);
template bool find(const Tape&, EuclideanSearch&, Matrix<const double>, Matrix<const double>, Vector<const double>, double,
                   const Limits&, Threads, Call&, Matrix<double>, Found&);

}  // namespace gdpnet
