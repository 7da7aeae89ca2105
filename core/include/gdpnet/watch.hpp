// Limits of time and interruptions, looked at from within a search.
#pragma once

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
};

// One thread's view of a call.
class Watch {
public:
    // `asks`: whether this is the thread that may ask, which is the one that was called.
    Watch(Call& call, bool asks) : call_(call), asks_(asks && call.ask != nullptr), asked_(Clock::now()) {}

    void begin_sample() {
        over_ = false;
        if (call_.time_limit < std::numeric_limits<double>::infinity()) began_ = Clock::now();
    }

    // Whether the sample at work has to stop. Called at every node; `cost` is about the number of
    // arithmetic operations since the last call, so that small nodes do not pay for a clock.
    bool over(long cost) {
        since_ += cost;
        if (since_ >= kBetween) look();
        return over_;
    }

    bool interrupted() const { return call_.interrupted.load(std::memory_order_relaxed); }

private:
    static constexpr long kBetween = 20000;   // operations between two looks at the clock
    static constexpr double kPatience = 0.03; // seconds between two questions

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
    bool over_ = false;
    long since_ = 0;
    Clock::time_point asked_;
    Clock::time_point began_;
};

}  // namespace gdpnet
