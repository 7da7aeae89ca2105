#include "gdpnet/euclidean_search.hpp"

#include <limits>

namespace gdpnet {

void EuclideanSearch::project(const Batch& batch, const Limits& limits, const Answers& answers, Threads threads,
                              Call& call) {
    over_samples(batch.size(), threads, call, [&](Watch& watch, Index first, Index last) {
        auto work = pool_.take([&] { return std::make_unique<Workspace>(component_); });
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            watch.begin_sample();
            one(*work, batch, s, limits, answers, watch);
        }
        pool_.give(std::move(work));
    });
}

void EuclideanSearch::one(Workspace& work, const Batch& batch, Index s, const Limits& limits, const Answers& answers,
                          Watch& watch) const {
    const Vector<const double> yhat = batch.yhat[s];
    work.sample.load(batch.varying[s], batch.bound[s]);
    work.assignment.begin(batch.active[s], batch.price[s], 0.5 / batch.price_unit);  // half of what is minimised
    work.assignment.leave_one_of(batch.leaving, s, {Norm::l2, yhat, batch.weights});
    watch.over(long(component_.rows.count()) + 50);
    if (component_.rows.plain && accepts(work.sample, work.assignment, yhat, limits.tolerance, answers.assignment[s])) {
        answers.status[s] = std::int8_t(Status::accepted);
        answers.distance[s] = answers.bound[s] = 0.0;
        answers.nodes[s] = 0;
        std::copy(yhat.begin(), yhat.end(), answers.z[s].begin());
        return;
    }
    if (limits.lost > 0.0) work.sample.allow_rounding(yhat, limits.lost);
    if (work.products && limits.lost == 0.0 && GramNode::suits(yhat, batch.weights)) {
        if (find(work, *work.products, batch, s, limits, answers, watch)) return;
        work.assignment.begin(batch.active[s]);
    }
    if (find(work, work.columns, batch, s, limits, answers, watch) || component_.rows.curves.none()) return;
    work.sample.loosen_curves(kThinRoom);
    work.assignment.begin(batch.active[s]);
    find(work, work.columns, batch, s, limits, answers, watch);
}

template <class AnyNode>
bool EuclideanSearch::find(Workspace& work, Searched<AnyNode>& searched, const Batch& batch, Index s, const Limits& limits,
                           const Answers& answers, Watch& watch) {
    auto& [node, nearest] = searched;
    nearest.begin(limits.nodes);
    Effort effort;
    const bool alive = node.begin(batch.yhat[s], batch.weights);
    const Finish finish = search(node, work.assignment, work.stack, nearest, watch, effort, alive);
    const auto [status, bound] = conclude(nearest, nearest.value, finish, work.stack);
    answers.status[s] = std::int8_t(status);
    answers.distance[s] = 2.0 * nearest.value;
    answers.bound[s] = 2.0 * bound;
    answers.nodes[s] = alive ? effort.opened : 0;
    const Vector<double> z = answers.z[s];
    if (nearest.value < kInfinity) {
        std::copy(nearest.best.begin(), nearest.best.end(), z.begin());
        std::copy(nearest.best_state.begin(), nearest.best_state.end(), answers.assignment[s].begin());
    } else {
        std::fill(z.begin(), z.end(), std::numeric_limits<double>::quiet_NaN());
        std::fill(answers.assignment[s].begin(), answers.assignment[s].end(), Truth(0));
    }
    return !nearest.trouble;
}

}  // namespace gdpnet
