#include "gdpnet/extended/engine.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gdpnet/extended/jacobian.hpp"

namespace gdpnet::extended {

Engine::Engine(Sources sources, Tables tables, Extent extent)
    : sources_(std::move(sources)), tables_(std::move(tables)), extent_(extent) {}

// Calls `work(s, workspace, watch)` for every sample.
template <class Work>
void Engine::in_workspaces(Index size, Threads threads, Call& call, Work work) {
    over_samples(size, threads, call, [&](Watch& watch, Index first, Index last) {
        auto workspace = pool_.take([&] { return std::make_unique<Workspace>(sources_, extent_); });
        for (Index s = first; s < last && !watch.interrupted(); ++s) {
            watch.begin_sample();
            work(s, *workspace, watch);
        }
        pool_.give(std::move(workspace));
    });
}

void Engine::solve(const Batch& batch, double tolerance, Threads threads, Call& call, const Output& output,
                   const Bases& bases) {
    in_workspaces(batch.size(), threads, call, [&](Index s, Workspace& work, Watch& watch) {
        solve_sample(batch, s, tolerance, output, bases, work, watch);
    });
}

void Engine::solve_sample(const Batch& batch, Index s, double tolerance, const Output& output, const Bases& bases,
                          Workspace& work, Watch& watch) const {
    const Sample sample = batch[s];
    const auto layout = std::size_t(batch.layout[std::size_t(s)]);
    const Index begin = tables_.layout_part[layout], end = tables_.layout_part[layout + 1];
    const Index first_block = tables_.part_block[std::size_t(begin)];
    const Index offset = tables_.block_product[std::size_t(first_block)];
    const Vector<double> y = output.y[s];
    Outcome outcome = Outcome::solved;
    double value = 0.0;
    Index kept = 0;
    std::copy(sample.start.begin(), sample.start.end(), y.begin());
    std::copy(sample.price.begin(), sample.price.end(), work.price.begin());
    std::fill_n(output.weight[s].data(), output.weight.width, 0.0);
    std::fill_n(output.product[s].data(), output.product.width, kNoBlock);
    for (Index number = begin; number < end && outcome == Outcome::solved; ++number) {
        const Part part(sources_, tables_, number, offset);
        load_part(sources_, part, sample, work);
        const Solved solved = solve_part(part, work, watch);
        value += solved.value;
        outcome = solved.outcome;
        if (outcome != Outcome::solved) break;
        write_weights(part, work, solved.columns, output.weight[s]);
        for (Index k = 0; k < part.d; ++k) {
            const auto j = std::size_t(part.column(k));
            const double at = work.shift[std::size_t(k)] + work.point[std::size_t(k)];
            y[j] = std::min(std::max(at, sources_.lower[j]), sources_.upper[j]);
        }
        const Index block = tables_.part_block[std::size_t(number)] - first_block;
        write_satisfied(part, work, tolerance, output.product[s].data() + block);
        if (bases.state.lines > 0) {
            const KeptBasis basis{bases.state[s].data(), bases.rank[s].data() + block, bases.column[s].data() + kept,
                                  bases.row[s].data() + kept, bases.value[s].data() + kept};
            const Index size = keep_basis(part, work, solved.columns, basis, watch);
            bases.size(s, number - begin) = size;
            kept += size;
        }
    }
    output.value[std::size_t(s)] = value;
    output.outcome[std::size_t(s)] = std::int8_t(outcome);
    if (outcome != Outcome::solved) std::fill(y.begin(), y.end(), std::numeric_limits<double>::quiet_NaN());
}

void Engine::vjp(const Batch& batch, Threads threads, Call& call, Vector<const std::int8_t> outcome,
                 const ConstBases& bases, Matrix<const double> gradient, const Gradients& found) {
    in_workspaces(batch.size(), threads, call, [&](Index s, Workspace& work, Watch&) {
        if (outcome[std::size_t(s)] == std::int8_t(Outcome::solved)) {
            vjp_sample(batch, s, bases, gradient[s], found, work);
        }
    });
}

void Engine::vjp_sample(const Batch& batch, Index s, const ConstBases& bases, Vector<const double> gradient,
                        const Gradients& found, Workspace& work) const {
    const auto layout = std::size_t(batch.layout[std::size_t(s)]);
    const Index begin = tables_.layout_part[layout], end = tables_.layout_part[layout + 1];
    const Index first_block = tables_.part_block[std::size_t(begin)];
    const Index offset = tables_.block_product[std::size_t(first_block)];
    Index kept = 0;
    for (Index number = begin; number < end; ++number) {
        const Index size = bases.size(s, number - begin);
        if (size == 0) continue;
        const Part part(sources_, tables_, number, offset);
        load_part(sources_, part, batch[s], work);
        const Index block = tables_.part_block[std::size_t(number)] - first_block;
        const PartBasis basis{bases.state[s].data(),         bases.rank[s].data() + block, size,
                              bases.column[s].data() + kept, bases.row[s].data() + kept,
                              bases.value[s].data() + kept};
        vjp_part(sources_, part, work, basis, gradient, {found.start[s], found.bound[s], found.varying[s]});
        kept += size;
    }
}

}  // namespace gdpnet::extended
