// Numbers of several samples, worked on together: one number of each sample, in a lane of its own.
//
// Code over lanes reads like code over numbers; it only has no branches that depend on them. What is
// in one lane never depends on what is in another.
#pragma once

namespace gdpnet::blocks {

// What one instruction works on. Where the compiler has vectors they are used: its own loops over
// numbers stay scalar wherever two arrays might overlap.
template <int Width>
struct Register;

#if defined(__GNUC__)
template <>
struct Register<2> {
    typedef double Numbers __attribute__((vector_size(16)));
};
template <>
struct Register<4> {
    typedef double Numbers __attribute__((vector_size(32)));
};
template <>
struct Register<8> {
    typedef double Numbers __attribute__((vector_size(64)));
};
#else
template <int Width>
struct Register {
    struct alignas(Width * sizeof(double)) Numbers {
        double number[Width];

        double& operator[](int lane) { return number[lane]; }
        double operator[](int lane) const { return number[lane]; }
        template <class Operation>
        static Numbers each(const Numbers& a, const Numbers& b, Operation operation) {
            Numbers found;
            for (int l = 0; l < Width; ++l) found.number[l] = operation(a.number[l], b.number[l]);
            return found;
        }
        friend Numbers operator+(const Numbers& a, const Numbers& b) {
            return each(a, b, [](double x, double y) { return x + y; });
        }
        friend Numbers operator-(const Numbers& a, const Numbers& b) {
            return each(a, b, [](double x, double y) { return x - y; });
        }
        friend Numbers operator*(const Numbers& a, const Numbers& b) {
            return each(a, b, [](double x, double y) { return x * y; });
        }
        friend Numbers operator/(const Numbers& a, const Numbers& b) {
            return each(a, b, [](double x, double y) { return x / y; });
        }
    };
};
#endif

// Two registers keep a narrow CPU busier than one: what is done once for all lanes weighs less.
template <int Width, int Count>
struct Lanes {
    using Numbers = typename Register<Width>::Numbers;

    static constexpr int kLanes = Width * Count;
    static constexpr int kRegisters = Count;

    Numbers part[Count];

    Lanes() = default;
    Lanes(double value) {
        for (auto& numbers : part)
            for (int l = 0; l < Width; ++l) numbers[l] = value;
    }

    double get(int lane) const { return part[lane / Width][lane % Width]; }
    void set(int lane, double value) { part[lane / Width][lane % Width] = value; }

    template <class Operation>
    static Lanes each(const Lanes& a, const Lanes& b, Operation operation) {
        Lanes found;
        for (int k = 0; k < Count; ++k) found.part[k] = operation(a.part[k], b.part[k]);
        return found;
    }
    friend Lanes operator+(const Lanes& a, const Lanes& b) {
        return each(a, b, [](const Numbers& x, const Numbers& y) { return x + y; });
    }
    friend Lanes operator-(const Lanes& a, const Lanes& b) {
        return each(a, b, [](const Numbers& x, const Numbers& y) { return x - y; });
    }
    friend Lanes operator*(const Lanes& a, const Lanes& b) {
        return each(a, b, [](const Numbers& x, const Numbers& y) { return x * y; });
    }
    friend Lanes operator/(const Lanes& a, const Lanes& b) {
        return each(a, b, [](const Numbers& x, const Numbers& y) { return x / y; });
    }
    Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
    Lanes& operator-=(const Lanes& other) { return *this = *this - other; }

    // `yes` where a < b, else `no`; a comparison with NaN is false.
    friend Lanes where_less(const Lanes& a, const Lanes& b, const Lanes& yes, const Lanes& no) {
        Lanes found;
        for (int k = 0; k < Count; ++k) {
#if defined(__GNUC__)
            found.part[k] = a.part[k] < b.part[k] ? yes.part[k] : no.part[k];
#else
            for (int l = 0; l < Width; ++l)
                found.part[k][l] = a.part[k][l] < b.part[k][l] ? yes.part[k][l] : no.part[k][l];
#endif
        }
        return found;
    }

    // The smaller and the larger of two; the first if the second is NaN.
    friend Lanes least(const Lanes& a, const Lanes& b) { return where_less(b, a, b, a); }
    friend Lanes most(const Lanes& a, const Lanes& b) { return where_less(a, b, b, a); }

    // Whether all are 0; NaN is not.
    friend bool all_zero(const Lanes& a) {
        bool zero = true;
        for (int l = 0; l < kLanes; ++l) zero = zero && a.get(l) == 0.0;
        return zero;
    }
};

}  // namespace gdpnet::blocks
