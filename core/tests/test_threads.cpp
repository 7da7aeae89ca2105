#include "check.hpp"
#include "gdpnet/threads.hpp"

using namespace gdpnet;

TEST("every sample is worked on once, whatever the number of threads") {
    for (Index threads : {1, 2, 5}) {
        for (Index size : {0, 1, 15, 17, 1000}) {
            for (bool chosen : {false, true}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(size));
                Call call;
                over_samples(size, {threads, chosen}, call, [&](Watch&, Index first, Index last) {
                    for (Index s = first; s < last; ++s) ++seen[std::size_t(s)];
                });
                for (auto& count : seen) CHECK(count == 1);
            }
        }
    }
}

TEST("what a thread throws reaches the caller") {
    Call call;
    bool thrown = false;
    try {
        over_samples(100, {4, true}, call, [](Watch&, Index first, Index) {
            if (first > 10) throw std::runtime_error("no");
        });
    } catch (const std::runtime_error&) {
        thrown = true;
    }
    CHECK(thrown);
}

TEST("a watch ends a sample after its time, and all of them on interruption") {
    Call call;
    call.time_limit = 0.01;
    Watch watch(call, true);
    watch.begin_sample();
    CHECK(!watch.over(30000));
    const auto start = Clock::now();
    while (!watch.over(30000) && Clock::now() - start < std::chrono::seconds(5)) {
    }
    CHECK(Clock::now() - start < std::chrono::seconds(1));
    watch.begin_sample();
    CHECK(!watch.over(30000));
    call.interrupted = true;
    CHECK(watch.over(30000));
}
