// N numbers that are worked on by one instruction: one number of each of N samples.
//
// Code over lanes reads like code over numbers; it only has no branches that depend on them. What is
// in one lane never depends on what is in another.
#pragma once

namespace gdpnet::blocks {

// Where the compiler has vectors they are used; its own loops over N numbers stay scalar wherever two
// arrays might overlap.
template <int N>
struct Vectors;

#if defined(__GNUC__)
template <>
struct Vectors<2> {
    typedef double Type __attribute__((vector_size(16)));
};
template <>
struct Vectors<4> {
    typedef double Type __attribute__((vector_size(32)));
};
template <>
struct Vectors<8> {
    typedef double Type __attribute__((vector_size(64)));
};
#else
template <int N>
struct Vectors {
    struct alignas(N * sizeof(double)) Type {
        double number[N];
        double& operator[](int lane) { return number[lane]; }
        double operator[](int lane) const { return number[lane]; }
    };
};
#endif

template <int N>
struct Lanes {
    using Numbers = typename Vectors<N>::Type;
    Numbers numbers;

    Lanes() = default;
    explicit Lanes(Numbers numbers) : numbers(numbers) {}
    double get(int lane) const { return numbers[lane]; }
    void set(int lane, double value) { numbers[lane] = value; }

#if defined(__GNUC__)
    Lanes(double value) : numbers(value - Numbers{}) {}  // minus 0 changes nothing, not even -0

    friend Lanes operator+(Lanes a, Lanes b) { return Lanes(a.numbers + b.numbers); }
    friend Lanes operator-(Lanes a, Lanes b) { return Lanes(a.numbers - b.numbers); }
    friend Lanes operator*(Lanes a, Lanes b) { return Lanes(a.numbers * b.numbers); }
    friend Lanes operator/(Lanes a, Lanes b) { return Lanes(a.numbers / b.numbers); }

    // `yes` where a < b, else `no`; a comparison with NaN is false.
    friend Lanes where_less(Lanes a, Lanes b, Lanes yes, Lanes no) {
        return Lanes(a.numbers < b.numbers ? yes.numbers : no.numbers);
    }
#else
    Lanes(double value) {
        for (int l = 0; l < N; ++l) numbers[l] = value;
    }

    template <class Operation>
    static Lanes each(Lanes a, Lanes b, Operation operation) {
        Lanes found;
        for (int l = 0; l < N; ++l) found.numbers[l] = operation(a.numbers[l], b.numbers[l]);
        return found;
    }
    friend Lanes operator+(Lanes a, Lanes b) {
        return each(a, b, [](double x, double y) { return x + y; });
    }
    friend Lanes operator-(Lanes a, Lanes b) {
        return each(a, b, [](double x, double y) { return x - y; });
    }
    friend Lanes operator*(Lanes a, Lanes b) {
        return each(a, b, [](double x, double y) { return x * y; });
    }
    friend Lanes operator/(Lanes a, Lanes b) {
        return each(a, b, [](double x, double y) { return x / y; });
    }
    friend Lanes where_less(Lanes a, Lanes b, Lanes yes, Lanes no) {
        Lanes found;
        for (int l = 0; l < N; ++l) found.numbers[l] = a.numbers[l] < b.numbers[l] ? yes.numbers[l] : no.numbers[l];
        return found;
    }
#endif

    Lanes& operator+=(Lanes other) { return *this = *this + other; }
    Lanes& operator-=(Lanes other) { return *this = *this - other; }

    // The smaller and the larger of two; the first if the second is NaN.
    friend Lanes least(Lanes a, Lanes b) { return where_less(b, a, b, a); }
    friend Lanes most(Lanes a, Lanes b) { return where_less(a, b, b, a); }

    // Whether all are 0; NaN is not.
    friend bool all_zero(Lanes a) {
        bool zero = true;
        for (int l = 0; l < N; ++l) zero = zero && a.get(l) == 0.0;
        return zero;
    }
};

}  // namespace gdpnet::blocks
