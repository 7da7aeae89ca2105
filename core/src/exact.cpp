#include "gdpnet/exact.hpp"

#include <cmath>
#include <limits>

namespace gdpnet {

namespace {

// Columns that are where the prediction is.
void pass_through(const Dictionaries& dictionaries, Index s) {
    for (Index j = 0; j < dictionaries.column_state.width; ++j) {
        dictionaries.column_state(s, j) = std::int8_t(ColumnState::follows);
        dictionaries.column_source(s, j) = -1;
        dictionaries.tight_rows(s, j) = -1;
        dictionaries.multipliers(s, j) = 0.0;
        dictionaries.reduced_costs(s, j) = 0.0;
    }
}

}  // namespace

bool all_proved(const Answers& answers) {
    for (const auto status : answers.status)
        if (status != std::int8_t(Status::solved) && status != std::int8_t(Status::accepted)) return false;
    return true;
}

void Search::project(const Batch& batch, const Limits& limits, const Answers& answers, const Dictionaries* dictionaries,
                     Threads threads, Call& call) {
    over_samples(batch.size(), threads, call, [&](Watch& watch, Index first, Index last) {
        auto work = pool_.take([&] { return std::make_unique<Workspace>(component_); });
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            watch.over(work->linear.take_effort());  // what the last one spent is none of the next one's
            watch.begin_sample();
            one(*work, batch, s, limits, answers, dictionaries, watch);
        }
        pool_.give(std::move(work));
    });
}

void Search::one(Workspace& work, const Batch& batch, Index s, const Limits& limits, const Answers& answers,
                 const Dictionaries* dictionaries, Watch& watch) const {
    const Vector<const double> yhat = batch.yhat[s];
    const Rows& rows = component_.rows;
    work.sample.load(batch.varying[s], batch.bound[s]);
    work.assignment.begin(batch.active[s], batch.price[s], 1.0 / batch.price_unit);
    work.assignment.leave_one_of(batch.leaving, s, {Norm::l1, yhat, batch.weights});
    watch.over(long(rows.count()) + 50);
    if (rows.plain && accepts(work.sample, work.assignment, yhat, limits.tolerance, answers.assignment[s])) {
        answers.status[s] = std::int8_t(Status::accepted);
        answers.distance[s] = answers.bound[s] = 0.0;
        answers.nodes[s] = 0;
        std::copy(yhat.begin(), yhat.end(), answers.z[s].begin());
        if (dictionaries != nullptr) pass_through(*dictionaries, s);
        return;
    }
    if (limits.fine) work.sample.refine();
    if (limits.lost > 0.0) work.sample.allow_rounding(yhat, limits.lost);
    Nearest& nearest = work.nearest;
    Effort effort;
    const auto run = [&](Index nodes) {
        nearest.begin(nodes);
        work.linear.start(rows.lower, rows.upper, yhat, batch.weights);
        const bool alive = enforce_globals(work);
        return search(work.linear, work.assignment, work.stack, nearest, watch, effort, alive);
    };
    Finish finish;
    // Which rules may be left out together is nothing that parts know of.
    const bool apart = taken_apart_ && batch.leaving == nullptr;
    if (apart && rows.columns() > limits.whole_columns && limits.nodes > limits.whole_nodes) {
        finish = run(limits.whole_nodes);
        if (finish == Finish::limited && !watch.over(0)) {
            work.assignment.begin(batch.active[s]);
            finish = nearest.trouble ? run(limits.nodes) : by_parts(work, batch, s, limits, effort, watch);
        }
    } else {
        finish = run(limits.nodes);
    }
    if (nearest.trouble && !rows.curves.none()) {
        work.sample.loosen_curves(kThinRoom);
        work.assignment.begin(batch.active[s]);
        finish = run(limits.nodes);
    }
    const auto [status, bound] = conclude(nearest, nearest.distance, finish, work.stack);
    answers.status[s] = std::int8_t(status);
    answers.distance[s] = nearest.distance;
    answers.bound[s] = bound;
    answers.nodes[s] = effort.opened;
    const Vector<double> z = answers.z[s];
    if (!(nearest.distance < kInfinity)) {
        std::fill(z.begin(), z.end(), std::numeric_limits<double>::quiet_NaN());
        std::fill(answers.assignment[s].begin(), answers.assignment[s].end(), Truth(0));
        if (dictionaries != nullptr) pass_through(*dictionaries, s);
        return;
    }
    const LinearState& best = nearest.best;
    for (Index j = 0; j < Index(z.size()); ++j) {
        double x = best.value[j];
        if (best.place[j] >= 0) x = std::min(std::max(x, rows.lower[j]), rows.upper[j]);
        z[j] = x + 0.0;  // minus zero becomes zero
    }
    std::copy(nearest.best_state.begin(), nearest.best_state.end(), answers.assignment[s].begin());
    if (dictionaries != nullptr) read_dictionary(work, s, *dictionaries);
}

bool Search::enforce_globals(Workspace& work) const {
    for (Index i : component_.rows.global_rows)
        if (!work.linear.enforce(i)) return false;
    return true;
}

void Search::read_dictionary(const Workspace& work, Index s, const Dictionaries& dictionaries) const {
    const LinearState& best = work.nearest.best;
    const Rows& rows = component_.rows;
    const Index n = rows.columns(), m = rows.count();
    const auto row_of = [&](Index code) { return code < m ? code : code - m; };
    for (Index j = 0; j < n; ++j) {
        auto& state = dictionaries.column_state(s, j);
        auto& source = dictionaries.column_source(s, j);
        auto& reduced = dictionaries.reduced_costs(s, j);
        source = -1;
        reduced = 0.0;
        if (best.place[j] >= 0) {
            state = std::int8_t(ColumnState::determined);
            continue;
        }
        const double x = best.value[j], lower = best.lower[j], upper = best.upper[j], kink = work.linear.kink[j];
        if (x == kink && !(x == lower && lower == upper)) {
            // An integer stays where it is when the prediction moves a little.
            state = std::int8_t(rows.integer[j] ? ColumnState::rests : ColumnState::follows);
            continue;
        }
        if (x != lower && x != upper) {
            state = std::int8_t(ColumnState::rests);
            continue;
        }
        const bool at_lower = x == lower;
        state = std::int8_t(at_lower ? ColumnState::at_lower : ColumnState::at_upper);
        reduced = best.reduced[-1 - best.place[j]];
        if (j < rows.outputs && x != kink) reduced += x > kink ? work.linear.weight[j] : -work.linear.weight[j];
        source = at_lower ? best.lower_source[j] : best.upper_source[j];
        if (at_lower && lower == upper && source < 0) source = best.upper_source[j];
        if (source >= 0) source = row_of(source);
    }
    Index count = 0;
    for (Index p = 0; p < n; ++p) {
        const Index code = best.nonbasic[p] - n;
        if (code < 0) continue;
        if (code < m && code >= rows.given()) continue;  // a cut, which no caller knows; see CurvedFace
        const Index i = row_of(code);
        dictionaries.tight_rows(s, count) = i;
        dictionaries.multipliers(s, count) = (code < m ? 1.0 : -1.0) * best.reduced[p] * work.sample.scale[i];
        ++count;
    }
    for (; count < n; ++count) {
        dictionaries.tight_rows(s, count) = -1;
        dictionaries.multipliers(s, count) = 0.0;
    }
}

SetsOfBatch Search::cheapest(const Batch& batch, const Droppable& rules, Index nodes, Threads threads, Call& call) {
    Patterns patterns(batch);
    SetsOfBatch found{rules, std::move(patterns.pattern), std::vector<CheapestSets>(patterns.first.size())};
    over_samples(Index(patterns.first.size()), threads, call, [&](Watch& watch, Index first, Index last) {
        auto work = pool_.take([&] { return std::make_unique<Workspace>(component_); });
        for (Index p = first; p < last && !watch.interrupted(); ++p) {
            watch.over(work->linear.take_effort());
            watch.begin_sample();
            cheapest_of(*work, batch, patterns.first[std::size_t(p)], found.rules, nodes, found.cheapest[std::size_t(p)], watch);
        }
        pool_.give(std::move(work));
    });
    return found;
}

// Neither distances nor prices count: any point will do.
void Search::cheapest_of(Workspace& work, const Batch& batch, Index s, const Droppable& rules, Index nodes,
                         CheapestSets& found, Watch& watch) const {
    const Rows& rows = component_.rows;
    const std::vector<double> nothing(std::size_t(rows.outputs), 0.0), free(component_.logic.priced.size(), 0.0);
    work.sample.load(batch.varying[s], batch.bound[s]);
    work.assignment.collect(rules, found);
    Effort effort;
    const auto run = [&] {
        found = {};
        work.assignment.begin(batch.active[s], free, 1.0);
        work.nearest.begin(nodes);
        work.linear.start(rows.lower, rows.upper, nothing, nothing);
        const bool alive = enforce_globals(work);
        return search(work.linear, work.assignment, work.stack, work.nearest, watch, effort, alive);
    };
    Finish finish = run();
    if (work.nearest.trouble && !rows.curves.none()) {
        work.sample.loosen_curves(kThinRoom);
        finish = run();
    }
    found.hopeless = conclude(work.nearest, work.nearest.distance, finish, work.stack).status == Status::no_solution;
    std::sort(found.sets.begin(), found.sets.end());
    if (found.listed && found.least > 0.0)
        found.products = kept_products(work.sample, component_.logic, batch.active[s], rules, found.sets);
}

void Search::products(const Batch& batch, Vector<const double> reach, const ProductLists& lists, Call& call) {
    over_samples(batch.size(), {1, true}, call, [&](Watch& watch, Index first, Index last) {
        auto work = pool_.take([&] { return std::make_unique<Workspace>(component_); });
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            watch.begin_sample();
            work->sample.load(batch.varying[s], batch.bound[s]);
            work->assignment.begin(batch.active[s]);
            work->linear.start(component_.rows.lower, component_.rows.upper, batch.yhat[s], batch.weights);
            Within within(work->linear, work->assignment, reach[s],
                          {lists.distance[s], lists.point[s], lists.assignment[s]});
            Effort effort;
            const bool alive = enforce_globals(*work);
            const Finish finish = search(work->linear, work->assignment, work->stack, within, watch, effort, alive);
            lists.count[s] = finish == Finish::stopped ? -1 : within.found;
        }
        pool_.give(std::move(work));
    });
}

}  // namespace gdpnet
