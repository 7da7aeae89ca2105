#include "gdpnet/blocks/blocks.hpp"

#include <algorithm>
#include <new>

#include "gdpnet/blocks/kernels.hpp"

namespace gdpnet::blocks {

namespace {

constexpr std::align_val_t kLine{64};
constexpr Index kTogether = 8;  // samples that no thread is to part: those of the widest vector

// Numbers of memory that is kept: asking for more takes no time beside what is computed in it, and
// every part of every pattern of active rules would hold on to its own.
constexpr Index kKept = 1 << 18;

}  // namespace

const Kernels& kernels() {
#if defined(GDPNET_WIDE)
    if (chosen_cpu() == Cpu::avx512) return kAvx512;
    if (chosen_cpu() == Cpu::avx2) return kAvx2;
#endif
    return kBaseline;
}

Workspace::Workspace(Index numbers)
    : data_(static_cast<double*>(::operator new(std::size_t(numbers) * sizeof(double), kLine))), numbers_(numbers) {
    std::fill_n(data_, numbers, 0.0);
}

Workspace::~Workspace() { ::operator delete(data_, kLine); }

Part::Part(Arrays arrays) : arrays_(std::move(arrays)) {
    const Arrays& a = arrays_;
    shape_.outputs = a.outputs;
    shape_.auxiliaries = a.auxiliaries;
    shape_.width = 2 * a.outputs + 1 + a.auxiliaries;
    shape_.rules = Index(a.source.size());
    shape_.lines = Index(a.equality.size());
    shape_.blocks = Index(a.first_copy.size()) - 1;
    shape_.copies = Index(a.first_place.size()) - 1;
    shape_.places = Index(a.row.size());
    shape_.columns = a.columns.data();
    shape_.lower = a.lower.data();
    shape_.upper = a.upper.data();
    shape_.source = a.source.data();
    shape_.varying = a.varying.data();
    shape_.shared = a.shared.data();
    shape_.first_copy = a.first_copy.data();
    shape_.first_place = a.first_place.data();
    shape_.row = a.row.data();
    shape_.equality = a.equality.data();
    shape_.start = a.start.data();
    shape_.entry = a.entry.data();
}

template <class Work>
void Part::over(const Batch& batch, Threads threads, Call& call, Work work) {
    const Kernels& compiled = kernels();
    const Index numbers = compiled.vectors(shape_) * compiled.lanes;
    const long cost = long(shape_.copies * shape_.width * shape_.width * shape_.width * compiled.lanes);
    struct Asking {
        Watch& watch;
        long cost;
    };
    over_samples(
        batch.size, threads, call,
        [&](Watch& watch, Index first, Index last) {
            Asking asking{watch, cost};
            const Stop stop{&asking, [](void* context) {
                                auto& own = *static_cast<Asking*>(context);
                                return own.watch.over(own.cost);
                            }};
            auto memory = pool_.take([&] { return std::make_unique<Workspace>(numbers); });
            // The CPU was chosen anew since: this one is for vectors of another width.
            if (memory->numbers() < numbers) memory = std::make_unique<Workspace>(numbers);
            work(compiled, first, last, memory->data(), stop);
            if (memory->numbers() <= kKept) pool_.give(std::move(memory));
        },
        kTogether);
}

void Part::solve(const Batch& batch, Points points, Threads threads, Call& call) {
    over(batch, threads, call, [&](const Kernels& compiled, Index first, Index last, double* memory, Stop stop) {
        compiled.solve(shape_, batch, first, last, points, memory, stop);
    });
}

void Part::vjp(const Batch& batch, Adjoints adjoints, Threads threads, Call& call) {
    over(batch, threads, call, [&](const Kernels& compiled, Index first, Index last, double* memory, Stop stop) {
        compiled.vjp(shape_, batch, first, last, adjoints, memory, stop);
    });
}

}  // namespace gdpnet::blocks
