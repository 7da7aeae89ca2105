#include "gdpnet/band/solver.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

// One thread's memory, and the program of one sample after the other.
struct Solver::Workspace {
    const Rows& rows;
    Sample sample;
    Linear node;
    Assignment assignment;
    Stack stack;
    Listing listing;
    Pieces pieces;
    Products products;
    std::vector<double> lower, upper;  // (n,)

    Workspace(const Component& component, const Choices& choices)
        : rows(component.rows),
          sample(component.rows),
          node(sample),
          assignment(component),
          stack(component),
          listing(choices, node, assignment),
          pieces(component),
          lower(component.rows.lower),
          upper(component.rows.upper) {}

    void make_room(Index cap) {
        if (products.places() <= cap) products = Products(cap + 1, rows.columns(), Index(assignment.state.size()));
    }

    // How far the farthest product with weight may be; see the head of solver.hpp.
    double reach(const Given& given, Index s, Vector<const double> nearest, Vector<const Truth> chosen) const {
        double distance = 0.0, size = 1.0;
        for (Index j = 0; j < rows.columns(); ++j) {
            if (j < rows.outputs) {
                const double move = nearest[j] - given.yhat(s, j);
                distance += given.weights[j] * std::abs(move);
                size += 2.0 * move * move;
            } else {
                size += nearest[j] * nearest[j];
            }
        }
        if (assignment.prices.any) distance += assignment.prices.sum(chosen);
        return distance + (given.eps * size + kReach * std::max(1.0, distance));
    }

    // Lists the products of a sample; false where there are none.
    bool list(const Given& given, const Projected& projected, Index s, Index cap, Watch& watch) {
        const auto nearest = projected.nearest[s];
        sample.load(given.varying[s], given.bound[s]);
        for (Index j = 0; j < rows.columns(); ++j) {
            if (rows.integer[j]) lower[j] = upper[j] = std::nearbyint(nearest[j]);
        }
        node.start(lower, upper, given.yhat[s], given.weights);
        assignment.begin(projected.active[s], given.price[s], 1.0 / given.price_unit);
        const double farthest = reach(given, s, nearest, projected.assignment[s]);
        listing.begin(projected.assignment[s], rows.outputs, given.eps, farthest, cap, products);
        bool alive = true;
        for (const Index i : rows.global_rows) alive = alive && node.enforce(i);
        const Finish finish = listing.run(stack, watch, alive);
        // Out of time: what was met is mixed, as where there is too much of it.
        if (finish == Finish::limited) listing.capped = true;
        return finish != Finish::stopped && products.count > 0;
    }

    Status solve(const Given& given, const Projected& projected, Index s, Index cap, Watch& watch) {
        if (!list(given, projected, s, cap, watch)) return Status::failed;
        products.fill();
        for (Index p = 0; p < products.count; ++p) {
            if (products.weight[p] > products.limit[p] * (1.0 - kWithinLimit)) {
                watch.begin_sample();  // a time limit of its own, or what was listed in time would be given up
                const bool settled = pieces.settle(given, s, projected.nearest[s], products, watch);
                return settled ? Status::pieces : Status::failed;
            }
        }
        return Status::vertices;
    }

    // Writes y of a sample that was solved; adds to its value and number of products.
    void mix(const Given& given, Index s, const Solution& solution) {
        const auto y = solution.y[s];
        std::ranges::copy(given.yhat[s], y.begin());
        for (Index p = 0; p < products.count; ++p) {
            const double weight = products.weight[p];
            if (weight <= 0.0) continue;
            const auto point = products.point[p];
            double& value = solution.value[s];
            ++solution.products[s];
            value += 0.5 * given.eps * weight * weight + weight * products.paid[p];
            for (Index j = 0; j < rows.columns(); ++j) {
                const double z = weight * point[j];
                if (j < rows.outputs) {
                    y[j] += z;
                    value += given.weights[j] * std::abs(z) + given.eps * z * z;
                } else {
                    value += 0.5 * given.eps * z * z;
                }
            }
        }
    }
};

Solver::Solver(const Component& component, Choices choices) : component_(component), choices_(std::move(choices)) {}

Solver::~Solver() = default;

Band Solver::solve(const Given& given, const Projected& projected, Index cap, const Solution& solution,
                   Threads threads, Call& call) {
    const Index size = given.yhat.lines;
    Band whole;
    whole.columns = component_.rows.columns();
    whole.priced = Index(component_.logic.priced.size());
    whole.start.assign(std::size_t(size + 1), 0);
    std::mutex mutex;
    std::vector<std::pair<Index, Band>> stretches;  // of samples that a thread did in one go, by the first of them
    over_samples(size, threads, call, [&](Watch& watch, Index first, Index last) {
        auto work = workspaces_.take([&] { return std::make_unique<Workspace>(component_, choices_); });
        work->make_room(cap);
        Band band;
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            if (solution.status[s] == std::int8_t(Status::passed)) continue;
            watch.begin_sample();
            const Status status = work->solve(given, projected, s, cap, watch);
            solution.status[s] = std::int8_t(status);
            solution.capped[s] = solution.capped[s] || work->listing.capped;
            if (status == Status::failed) continue;
            work->mix(given, s, solution);
            for (Index p = 0; p < work->products.count; ++p) {
                if (work->products.weight[p] <= 0.0) continue;
                band.append(work->products, p, component_.logic.priced);
                ++whole.start[s + 1];
            }
        }
        workspaces_.give(std::move(work));
        std::lock_guard<std::mutex> lock(mutex);
        stretches.emplace_back(first, std::move(band));
    });
    // In the order of the samples, whoever was done first.
    std::ranges::sort(stretches, {}, &std::pair<Index, Band>::first);
    for (Index s = 0; s < size; ++s) whole.start[s + 1] += whole.start[s];
    for (const auto& [first, band] : stretches) whole.append(band);
    return whole;
}

void Solver::vjp(const Given& given, const Band& band, const Gradients& gradients, Threads threads, Call& call) {
    over_samples(given.yhat.lines, threads, call, [&](Watch& watch, Index first, Index last) {
        auto adjoint = adjoints_.take([&] { return std::make_unique<Adjoint>(component_.rows); });
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            const Pull pull{given.varying[s],     given.bound[s],        given.yhat[s],          gradients.gradient[s],
                            gradients.to_yhat[s], gradients.to_bound[s], gradients.to_varying[s], gradients.to_price[s]};
            adjoint->sample(band, s, given.weights, given.eps, pull);
        }
        adjoints_.give(std::move(adjoint));
    });
}

}  // namespace gdpnet::band
