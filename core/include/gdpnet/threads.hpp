// Samples of a batch, shared out to threads. Samples do not influence each other, so answers do not
// depend on how many threads there are.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gdpnet/arrays.hpp"
#include "gdpnet/watch.hpp"

namespace gdpnet {

// Memory of threads that are done, for those that come. Several calls may use it at once.
template <class Workspace>
class Pool {
public:
    template <class Make>
    std::unique_ptr<Workspace> take(Make make) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (!idle_.empty()) {
                auto found = std::move(idle_.back());
                idle_.pop_back();
                return found;
            }
        }
        return make();
    }

    void give(std::unique_ptr<Workspace> workspace) {
        std::lock_guard<std::mutex> lock(mutex_);
        idle_.push_back(std::move(workspace));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

// Threads of a call. `chosen` false: fewer where there is too little to do.
struct Threads {
    Index most = 1;
    bool chosen = false;
};

constexpr Index kFew = 16;               // samples that are no matter for threads
constexpr double kWorthThreads = 4e-3;   // seconds of work that pay for starting them

// Calls `work(watch, first, last)` for all samples in pieces, from several threads. Pieces are cut at
// multiples of `together`, for work that takes so many samples at once.
template <class Work>
void over_samples(Index size, Threads threads, Call& call, Work work, Index together = 1) {
    Index first = 0;
    Index workers = std::min(threads.most, (size + together - 1) / together);
    if (workers > 1 && size <= kFew && !threads.chosen) workers = 1;
    if (workers > 1 && !threads.chosen) {
        // Threads cost more than they bring where there is little to do: look at a few samples.
        Watch watch(call, true);
        const auto start = Clock::now();
        first = kFew;
        work(watch, Index(0), first);
        const double spent = std::chrono::duration<double>(Clock::now() - start).count();
        if (spent / double(first) * double(size - first) < kWorthThreads) workers = 1;
    }
    if (workers <= 1) {
        Watch watch(call, true);
        if (first < size) work(watch, first, size);
        return;
    }
    // Pieces small enough that a few hard samples do not leave the others idle.
    const Index groups = (size - first + together - 1) / together;
    const Index pieces = std::min(8 * workers, groups);
    std::atomic<Index> next{0};
    std::mutex mutex;
    std::condition_variable changed;
    Index running = workers;
    std::exception_ptr failure;
    auto run = [&] {
        try {
            Watch watch(call, false);
            for (Index piece = next++; piece < pieces && !call.interrupted; piece = next++) {
                const Index from = first + together * (groups * piece / pieces);
                const Index to = first + together * (groups * (piece + 1) / pieces);
                work(watch, from, std::min(to, size));
            }
        } catch (...) {
            std::lock_guard<std::mutex> lock(mutex);
            if (!failure) failure = std::current_exception();
            call.interrupted = true;
        }
        std::lock_guard<std::mutex> lock(mutex);
        --running;
        changed.notify_all();
    };
    std::vector<std::thread> started;
    try {
        for (Index k = 0; k < workers; ++k) started.emplace_back(run);
    } catch (const std::system_error&) {  // no more threads to be had: fewer do
        std::lock_guard<std::mutex> lock(mutex);
        running -= workers - Index(started.size());
    }
    if (started.empty()) {
        Watch watch(call, true);
        work(watch, first, size);
        return;
    }
    {
        // The calling thread waits, and asks whether the user wants to stop.
        std::unique_lock<std::mutex> lock(mutex);
        while (running > 0) {
            changed.wait_for(lock, std::chrono::milliseconds(30));
            if (running > 0 && call.ask != nullptr && !call.interrupted) {
                lock.unlock();
                if (call.ask()) call.interrupted = true;
                lock.lock();
            }
        }
    }
    for (auto& thread : started) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace gdpnet
