// A small test harness: TEST("what") { CHECK(...); } in as many files as there are programs.
#pragma once

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace check {

struct Test {
    std::string name;
    std::function<void()> body;
};
inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}
inline int& failures() {
    static int count = 0;
    return count;
}
inline bool add(const char* name, std::function<void()> body) {
    tests().push_back({name, std::move(body)});
    return true;
}
inline void report(bool held, const char* what, const char* file, int line) {
    if (held) return;
    ++failures();
    std::printf("%s:%d: %s\n", file, line, what);
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)
#define TEST(name)                                                                                          \
    static void CHECK_JOIN(test_, __LINE__)();                                                              \
    static const bool CHECK_JOIN(added_, __LINE__) = check::add(name, CHECK_JOIN(test_, __LINE__));         \
    static void CHECK_JOIN(test_, __LINE__)()
#define CHECK(condition) check::report(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance) check::report(std::abs((a) - (b)) <= (tolerance), #a " == " #b, __FILE__, __LINE__)

int main() {
    int failed = 0;
    for (auto& test : check::tests()) {
        const int before = check::failures();
        test.body();
        if (check::failures() > before) {
            ++failed;
            std::printf("FAILED: %s\n", test.name.c_str());
        }
    }
    std::printf("%zu passed, %d failed\n", check::tests().size() - std::size_t(failed), failed);
    return failed > 0;
}
