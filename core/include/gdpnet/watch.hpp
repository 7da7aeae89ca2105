// Limits of time and interruptions, looked at from within a search.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>

namespace gdpnet {

using Clock = std::chrono::steady_clock;

// What all threads of a call share.
struct Call {
    std::atomic<bool> interrupted{false};
    // Asks the caller's language whether the user wants to stop; null where nobody is to be asked.
    bool (*ask)() = nullptr;
    double time_limit = std::numeric_limits<double>::infinity();  // seconds for a sample
    double patience = std::numeric_limits<double>::infinity();    // operations that a search is worth; see Watch::over
};

// One thread's view of a call.
class Watch {
public:
    // `asks`: whether this is the thread that may ask, which is the one that was called.
    Watch(Call& call, bool asks) : call_(call), asks_(asks && call.ask != nullptr), asked_(Clock::now()) {}

    void begin_sample() {
        over_ = by_parts_ = false;
        spent_ = 0.0;
        doubt_ = call_.patience * kFirstDoubt;
        if (call_.time_limit < std::numeric_limits<double>::infinity()) began_ = Clock::now();
    }

    // Whether the sample at work has to stop. Called at every node; `cost` is about the number of
    // arithmetic operations since the last call, so that small nodes do not pay for a clock.
    //
    // `done` is the share of a search that is finished. One that is not worth its patience ends early: whenever it has
    // spent twice as much as at the last look, the root of its share must have kept pace (the first incumbents come
    // late, and what follows goes fast). This counts operations, so an answer does not depend on the clock.
    bool over(long cost, double done = 1.0) {
        since_ += cost;
        if (since_ >= kBetween) look();
        spent_ += double(cost);
        if (by_parts_) {
            if (spent_ >= kPartsWorth * call_.patience) over_ = true;
        } else if (spent_ >= doubt_) {
            doubt_ = std::min(2.0 * doubt_, call_.patience);
            const double share = spent_ / call_.patience;
            if (share >= 1.0 || done < share * share) over_ = true;
        }
        return over_;
    }

    // From here on searches are those of parts, whose shares are none of the whole, or they no longer are. What was
    // spent is forgotten: either has a patience of its own.
    void go_by_parts(bool parts) {
        by_parts_ = parts;
        spent_ = 0.0;
        doubt_ = call_.patience * (parts ? kFirstDoubt : kDoubtAfterParts);
    }

    bool interrupted() const { return call_.interrupted.load(std::memory_order_relaxed); }

private:
    static constexpr long kBetween = 20000;   // operations between two looks at the clock
    static constexpr double kPatience = 0.03; // seconds between two questions
    static constexpr double kFirstDoubt = 1.0 / 16.0;  // of its patience, after which a search is first looked at
    static constexpr double kDoubtAfterParts = 1.0 / 4.0;  // ... of one with an incumbent and a bound by parts
    static constexpr double kPartsWorth = 4.0;         // patience with parts, in that of a search

    void look() {
        since_ = 0;
        const auto now = Clock::now();
        const auto seconds = [&](Clock::time_point from) { return std::chrono::duration<double>(now - from).count(); };
        if (asks_ && seconds(asked_) > kPatience) {
            asked_ = now;
            if (call_.ask()) call_.interrupted = true;
        }
        if (call_.time_limit < std::numeric_limits<double>::infinity() && seconds(began_) > call_.time_limit) over_ = true;
        if (interrupted()) over_ = true;
    }

    Call& call_;
    bool asks_;
    bool over_ = false, by_parts_ = false;
    long since_ = 0;
    double spent_ = 0.0, doubt_ = std::numeric_limits<double>::infinity();
    Clock::time_point asked_;
    Clock::time_point began_;
};

}  // namespace gdpnet
