#include "bind/batches.hpp"
#include "bind/bind.hpp"
#include "bind/classes.hpp"
#include "bind/calls.hpp"
#include "gdpnet/exact.hpp"
#include "gdpnet/vertex.hpp"

namespace nb = nanobind;

namespace gdpnet::bind {

namespace {

// The arrays of a `Detail`.
struct DictionaryArrays {
    Array<std::int8_t, 2> column_state;
    Array<Index, 2> column_source, tight_rows;
    Array<double, 2> multipliers, reduced_costs;

    explicit DictionaryArrays(nb::handle from)
        : column_state(entry<std::int8_t, 2>(from, 0)),
          column_source(entry<Index, 2>(from, 1)),
          tight_rows(entry<Index, 2>(from, 2)),
          multipliers(entry<double, 2>(from, 3)),
          reduced_costs(entry<double, 2>(from, 4)) {}

    Dictionaries views(const Rows& rows, Index size) const {
        const auto fits = [&](const auto& array) { return array.extent(0) == size && array.extent(1) == rows.columns(); };
        expect(fits(column_state) && fits(column_source) && fits(tight_rows) && fits(multipliers) && fits(reduced_costs),
               "detail: (batch, columns)");
        return {column_state, column_source, tight_rows, multipliers, reduced_costs};
    }
};

bool project(Search& self, const Bools& active, const Coefficients& varying, const Numbers& bound, const Numbers& yhat,
             const Weights& weights, const Numbers& price, double price_unit, Index node_limit, double tolerance, double lost,
             double time_limit, Index threads, bool chosen, nb::handle out, nb::handle detail, double patience,
             const SetsOfBatch* leaving, bool fine) {
    Batch batch = priced_batch_of(self.component(), batch_of(self.component(), active, varying, bound, yhat, weights),
                                        price, price_unit);
    leave(batch, leaving);
    const AnswerArrays arrays(out);
    const Answers answers = arrays.views(self.component(), batch.size());
    const auto run = [&](const Dictionaries* dictionaries) {
        interruptible(time_limit, [&](Call& call) {
            self.project(batch, {node_limit, tolerance, lost, fine}, answers, dictionaries, {threads, chosen}, call);
        }, patience);
    };
    if (detail.is_none()) {
        run(nullptr);
    } else {
        const DictionaryArrays wanted(detail);
        const Dictionaries dictionaries = wanted.views(self.component().rows, batch.size());
        run(&dictionaries);
    }
    return all_proved(answers);
}

SetsOfBatch cheapest(Search& self, const Bools& active, const Coefficients& varying, const Numbers& bound,
                     const Array<const Index, 1>& booleans, const Array<const Index, 1>& clauses,
                     const Array<const double, 1>& importance, Index node_limit, double time_limit,
                     Index threads, bool chosen) {
    const Component& component = self.component();
    const Index size = active.extent(0), count = booleans.extent(0);
    expect(clauses.extent(0) == count && importance.extent(0) == count, "cheapest: rules with an importance each");
    const Droppable rules{copied(booleans), copied(clauses), copied(importance)};
    for (Index p = 0; p < count; ++p) {
        const Index c = rules.clause[p];
        expect(0 <= c && c < component.logic.clauses() &&
                   component.logic.clause_literal[component.logic.clause_start[c + 1] - 1] == rules.boolean[p] + 1,
               "cheapest: clauses, and the booleans of their last literals");
    }
    const std::vector<double> nothing(std::size_t(size * component.rows.outputs), 0.0);
    expect(active.extent(1) == component.logic.clauses() && bound.extent(0) == size && bound.extent(1) == component.rows.given() &&
               varying.extent(0) == size && varying.extent(1) == Index(component.rows.varying.size()),
           "cheapest: arrays of the batch's size");
    const Batch batch{active, varying, bound, {nothing.data(), size, component.rows.outputs}, {}};
    SetsOfBatch found;
    interruptible(time_limit, [&](Call& call) {
        found = self.cheapest(batch, rules, node_limit, {threads, chosen}, call);
    });
    return found;
}

// Writes one sample of each kind of rules, and the kind of every sample, both (batch,); returns the number of kinds.
Index same_rules(const Bools& active, const Coefficients& varying, const Numbers& bound, const Array<Index, 1>& first,
                 const Array<Index, 1>& pattern) {
    const Index size = active.extent(0);
    expect(varying.extent(0) == size && bound.extent(0) == size && first.extent(0) == size && pattern.extent(0) == size,
           "same_rules: arrays of the batch's size");
    const Patterns found({active, varying, bound, {nullptr, size, 0}, {}});
    std::copy(found.first.begin(), found.first.end(), first.data());
    std::copy(found.pattern.begin(), found.pattern.end(), pattern.data());
    return Index(found.first.size());
}

// Where leaving out rules is proved not to help, (batch,).
void hopeless(const SetsOfBatch& self, const Array<bool, 1>& to) {
    expect(to.extent(0) == Index(self.pattern.size()), "hopeless: (batch,)");
    for (Index s = 0; s < to.extent(0); ++s) to.data()[s] = self.of(s).hopeless;
}

void products(Search& self, const Bools& active, const Coefficients& varying, const Numbers& bound, const Numbers& yhat,
              const Weights& weights, const Array<const double, 1>& reach, const Array<Index, 1>& count,
              const Array<double, 2>& distance, const Array<double, 3>& z, const Array<std::int8_t, 3>& assignment) {
    const Batch batch = batch_of(self.component(), active, varying, bound, yhat, weights);
    const Index size = batch.size(), cap = distance.extent(1);
    expect(reach.extent(0) == size && count.extent(0) == size && distance.extent(0) == size && z.extent(0) == size &&
               z.extent(1) == cap && z.extent(2) == self.component().rows.columns() && assignment.extent(0) == size &&
               assignment.extent(1) == cap && assignment.extent(2) == self.component().logic.booleans(),
           "products: (batch, most, ...)");
    interruptible(kNoLimit, [&](Call& call) { self.products(batch, reach, {count, distance, z, assignment}, call); });
}

void vjp_vertex(const Component& component, const Coefficients& varying, nb::handle detail, const Numbers& z,
                const Array<double, 2>& gradient, const Array<double, 2>& to_yhat, const Array<double, 2>& to_bound,
                const Array<double, 3>& to_varying) {
    const Rows& rows = component.rows;
    const Index size = z.extent(0), n = rows.columns(), k = Index(rows.varying.size());
    const DictionaryArrays given(detail);
    const Dictionaries dictionaries = given.views(rows, size);
    const auto fits = [&](const auto& array) {
        return array.extent(0) == size && array.extent(1) == k && (k == 0 || array.extent(2) == n);
    };
    expect(z.extent(1) == n && gradient.extent(0) == size && gradient.extent(1) == n && to_yhat.extent(0) == size &&
               to_yhat.extent(1) <= n && to_bound.extent(0) == size && to_bound.extent(1) == rows.given() &&
               fits(varying) && fits(to_varying),
           "vjp_vertex: arrays of the batch's size");
    nb::gil_scoped_release unlock;
    pull_back_vertex(rows, varying, dictionaries, z, {gradient, to_yhat, to_bound, to_varying});
}

}  // namespace

void bind_exact(nb::module_& module) {
    module.attr("SOLVED") = int(Status::solved);
    module.attr("NO_SOLUTION") = int(Status::no_solution);
    module.attr("NODE_LIMIT") = int(Status::limited);
    module.attr("NUMERICAL") = int(Status::numerical);
    module.attr("ACCEPTED_AS_IS") = int(Status::accepted);
    module.attr("DETERMINED") = int(ColumnState::determined);
    module.attr("ACCEPTED") = kAccepted;
    unchanging<SetsOfBatch>(module, "Sets", "Rules that may be left out, for a batch; see leaving.hpp.")
        .def("hopeless", &hopeless, nb::arg("to"), "Writes where leaving out rules does not help, (batch,).");
    unchanging<Search>(module, "Search", "Searches of one component; see exact.hpp.")
        .def(nb::init<Component>(), nb::arg("component"))
        .def("project", &project, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"),
             nb::arg("weights"), nb::arg("price"), nb::arg("price_unit"), nb::arg("node_limit"), nb::arg("tolerance"),
             nb::arg("lost"), nb::arg("time_limit"), nb::arg("threads"), nb::arg("chosen"), nb::arg("out"),
             nb::arg("detail").none(),
             nb::arg("patience") = kNoLimit, nb::arg("leaving").none() = nb::none(), nb::arg("fine") = false,
             "Projects a batch: writes the arrays of an `Output` and, unless None, of a `Detail`. Whether all is proved.")
        .def("cheapest", &cheapest, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("booleans"),
             nb::arg("clauses"), nb::arg("importance"), nb::arg("node_limit"), nb::arg("time_limit"),
             nb::arg("threads"), nb::arg("chosen"), "The cheapest sets of rules to leave out; see leaving.hpp.")
        .def("products", &products, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("yhat"),
             nb::arg("weights"), nb::arg("reach"), nb::arg("count"), nb::arg("distance"), nb::arg("z"),
             nb::arg("assignment"), "Lists the products of disjuncts within a reach.");
    module.def("same_rules", &same_rules, nb::arg("active"), nb::arg("varying"), nb::arg("bound"), nb::arg("first"),
               nb::arg("pattern"), "Which samples have the same rules; see leaving.hpp.");
    module.def("vjp_vertex", &vjp_vertex, nb::arg("component"), nb::arg("varying"), nb::arg("detail"), nb::arg("z"),
               nb::arg("gradient"), nb::arg("to_yhat"), nb::arg("to_bound"), nb::arg("to_varying"),
               "Gradients of projections, from their final dictionaries; see vertex.hpp.");
}

}  // namespace gdpnet::bind
