#include "gdpnet/extended/part.hpp"

#include <algorithm>
#include <cmath>

namespace gdpnet::extended {

namespace {

// Whether the rows of a product hold at z, measured from the prediction.
bool product_holds(const Part& part, const Workspace& work, Index product, const double* z) {
    for (Index i = 0; i < part.globals; ++i) {
        if (!work.local.holds(i, z)) return false;
    }
    for (const Index i : part.members(product)) {
        if (!work.local.holds(i, z)) return false;
    }
    return true;
}

// Makes the cheapest product of a block its reference: of those the nearest one, or the first.
void choose_reference(Workspace& work, Span span, std::size_t block) {
    Index cheapest = work.nearest[block];
    for (Index k = span.begin; k < span.end; ++k) {
        const bool cheaper = work.price[std::size_t(k)] < work.price[std::size_t(cheapest)];
        if (cheaper && work.state[std::size_t(k)] == State::present) cheapest = k;
    }
    work.state[std::size_t(cheapest)] = State::reference;
    work.least[block] = work.price[std::size_t(cheapest)];
}

// Finds the nearest point of a block, prices counted, and what it costs.
Outcome nearest_of_block(const Part& part, Workspace& work, Index block, Watch& watch) {
    const auto b = std::size_t(block);
    const Span span = part.products(block);
    double* point = work.points[block].data();
    double best = kInfinity;
    Index nearest = -1, holding = -1;  // the cheapest that holds at the prediction
    double held = kInfinity;
    for (Index k = span.begin; k < span.end; ++k) {
        work.state[std::size_t(k)] = State::present;
        const double price = work.price[std::size_t(k)];
        if (price < held && product_holds(part, work, k, work.zero.data())) {
            holding = k;
            held = price;
        }
    }
    for (Index k = span.begin; k < span.end; ++k) {
        const double price = work.price[std::size_t(k)];
        if (k == holding && price < best) {
            best = price;
            nearest = k;
            std::fill(point, point + part.n, 0.0);
        }
        if (price >= held) continue;
        const Optimisation outcome = solve_product(part, work, k, best - price, watch);
        if (outcome == Optimisation::trouble) return Outcome::failed;
        if (outcome == Optimisation::infeasible) {
            work.state[std::size_t(k)] = State::absent;
        } else if (outcome == Optimisation::optimal) {
            const double found = work.dictionary.distance() + price;
            if (found < best) {
                best = found;
                nearest = k;
                std::copy_n(work.dictionary.value.data(), part.n, point);
            }
        }
    }
    if (nearest < 0) return Outcome::contradictory;
    work.nearest[b] = Small(nearest);
    work.rank[b] = 0;
    choose_reference(work, span, b);
    work.distance[b] = best - work.least[b];
    return Outcome::solved;
}

// Of the blocks whose cheapest products all miss the point the one with the largest distance, or -1.
Index farthest_missed(const Part& part, Workspace& work) {
    const double* point = work.point.data();
    Index found = -1;
    for (Index block = 0; block < part.blocks; ++block) {
        const auto b = std::size_t(block);
        if (work.rank[b] != 0) continue;
        const auto serves = [&](Index k) {
            return work.price[std::size_t(k)] <= work.least[b] && product_holds(part, work, k, point);
        };
        bool holds = serves(work.nearest[b]);
        const Span span = part.products(block);
        for (Index k = span.begin; k < span.end && !holds; ++k) {
            holds = serves(k);
            if (holds) work.nearest[b] = Small(k);
        }
        if (!holds && (found < 0 || work.distance[b] > work.distance[std::size_t(found)])) found = block;
    }
    return found;
}

// Notes how far the columns of a copy go at most: what the point gains and loses, and all copies share, are sums of
// what copies gain and lose, and nobody gains from both at once.
void note_farthest(const Part& part, Workspace& work, Index first) {
    double* farthest = work.dictionary.farthest.data() + first;
    for (Index j = 0; j < part.n; ++j) {
        const auto k = std::size_t(j);
        if (j < part.d) farthest[j] = work.high[k];
        farthest[part.d + j] = j < part.d ? -work.low[k] : work.high[k];
    }
}

// A dictionary of the columns that all blocks share, at the prediction.
void start_program(const Part& part, Workspace& work) {
    Dictionary& dic = work.dictionary;
    const Index columns = part.base();
    std::fill_n(dic.lower.data(), columns, 0.0);
    std::fill_n(dic.upper.data(), columns, kInfinity);
    dic.start(columns, dic.lower.data(), dic.upper.data(), 2 * part.d, work.zero.data(), work.weights.data());
    note_farthest(part, work, 0);
}

// Adds a block to the program and to its dictionary, which stays dual feasible. False on contradiction.
bool add_block(const Part& part, Workspace& work, Index block, Counts& counts) {
    const Counts before = counts;
    counts = write_block(part, work, block, before);
    if (counts.columns > before.columns) work.dictionary.widen(counts.columns);
    const Span span = part.products(block);
    for (Index product = span.begin; product < span.end; ++product) {
        const auto k = std::size_t(product);
        if (work.state[k] != State::present) continue;
        note_farthest(part, work, work.first[k]);
        work.dictionary.farthest[work.first[k] + part.base()] = 1.0;
        const double more = work.price[k] - work.least[std::size_t(block)];
        if (more > 0.0) work.dictionary.charge(work.first[k] + part.base(), more);
    }
    for (Index i = before.rows; i < counts.rows; ++i) {
        if (!work.dictionary.enforce(work.lifted, i)) return false;
    }
    return true;
}

// Solves the program of the farthest block and of those that miss its point, one by one.
Solved solve_program(const Part& part, Workspace& work, Index farthest, Watch& watch) {
    Counts counts{0, 0};
    Small rank = 1;
    double value = work.distance[std::size_t(farthest)];
    work.rank[std::size_t(farthest)] = rank;
    std::copy_n(work.points[farthest].data(), part.n, work.point.data());
    while (true) {
        const Index missed = farthest_missed(part, work);
        if (missed < 0) return {Outcome::solved, value, counts.columns};
        work.rank[std::size_t(missed)] = ++rank;
        if (rank == 2) {
            start_program(part, work);
            counts.columns = part.base();
            if (!add_block(part, work, farthest, counts)) return {Outcome::contradictory, kInfinity, 0};
        }
        if (!add_block(part, work, missed, counts)) return {Outcome::contradictory, kInfinity, 0};
        const Dictionary& dic = work.dictionary;
        const Optimisation outcome = settle(work.simplex, work.lifted, kInfinity, watch);
        if (outcome == Optimisation::infeasible) return {Outcome::contradictory, kInfinity, 0};
        if (outcome != Optimisation::optimal) return {Outcome::failed, std::max(value, work.simplex.bound), 0};
        value = dic.distance();
        for (Index j = 0; j < part.n; ++j) {
            const double lost = dic.value[part.d + j];  // of an auxiliary: its value
            work.point[std::size_t(j)] = j < part.d ? dic.value[j] - lost : lost;
        }
    }
}

// Whether a row holds at the point within a tolerance relative to its size.
bool row_within(const Workspace& work, Index i, double tolerance) {
    double excess = work.local.excess(i, work.point.data());
    if (work.local.equality[i]) excess = std::abs(excess);
    return excess <= tolerance * work.size[std::size_t(i)];
}

}  // namespace

Optimisation solve_product(const Part& part, Workspace& work, Index product, double cutoff, Watch& watch) {
    Dictionary& dic = work.dictionary;
    dic.start(part.n, work.low.data(), work.high.data(), part.d, work.zero.data(), work.weights.data());
    for (Index i = 0; i < part.globals; ++i) {
        if (!dic.enforce(work.local, i)) return Optimisation::infeasible;
    }
    for (const Index i : part.members(product)) {
        if (!dic.enforce(work.local, i)) return Optimisation::infeasible;
    }
    return settle(work.simplex, work.local, cutoff, watch);
}

Solved solve_part(const Part& part, Workspace& work, Watch& watch) {
    Index farthest = 0;
    double least = 0.0;
    for (Index b = 0; b < part.blocks; ++b) {
        const Outcome outcome = nearest_of_block(part, work, b, watch);
        if (outcome == Outcome::failed) return {outcome, -kInfinity, 0};
        if (outcome == Outcome::contradictory) return {outcome, kInfinity, 0};
        if (work.distance[std::size_t(b)] > work.distance[std::size_t(farthest)]) farthest = b;
        least += work.least[std::size_t(b)];
    }
    Solved solved = solve_program(part, work, farthest, watch);
    solved.value += least;
    return solved;
}

void write_weights(const Part& part, const Workspace& work, Index columns, Vector<double> weight) {
    for (Index block = 0; block < part.blocks; ++block) {
        const auto b = std::size_t(block);
        const Span span = part.products(block);
        Index reference = work.nearest[b];
        double rest = 1.0;
        for (Index product = span.begin; product < span.end && columns > 0 && work.rank[b] != 0; ++product) {
            const auto k = std::size_t(product);
            if (work.state[k] == State::present) {
                const double share = work.dictionary.value[work.first[k] + part.base()];
                weight[k] = std::min(std::max(share, 0.0), 1.0);
                rest -= weight[k];
            } else if (work.state[k] == State::reference) {
                reference = product;
            }
        }
        weight[std::size_t(reference)] = std::max(rest, 0.0);
    }
}

void write_satisfied(const Part& part, const Workspace& work, double tolerance, std::int32_t* product) {
    bool shared = true;
    for (Index i = 0; i < part.globals && shared; ++i) shared = row_within(work, i, tolerance);
    for (Index b = 0; b < part.blocks; ++b) {
        const Span span = part.products(b);
        product[b] = -1;
        for (Index k = span.begin; k < span.end && shared && product[b] < 0; ++k) {
            const auto members = part.members(k);
            const bool holds = std::all_of(members.begin(), members.end(),
                                           [&](Index i) { return row_within(work, i, tolerance); });
            if (holds) product[b] = std::int32_t(k - span.begin);
        }
    }
}

}  // namespace gdpnet::extended
