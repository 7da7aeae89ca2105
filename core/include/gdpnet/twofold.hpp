// Sums of products at twice the precision, of multiplications and additions that round.
//
// What an addition loses is a number, and so is what a product loses (Dekker's, by halves of 26 bits: no fused
// operations). Both are added up beside the sum. Not for numbers beyond 1e290, whose halves are infinite.
#pragma once

namespace gdpnet {

struct Twofold {
    double high = 0.0, low = 0.0;

    void add(double x) {
        const double sum = high + x, back = sum - high;
        low += (high - (sum - back)) + (x - back);
        high = sum;
    }

    void add_product(double x, double y) {
        const double product = x * y;
        const double a = upper_half(x), b = x - a, c = upper_half(y), d = y - c;
        low += ((a * c - product) + a * d + b * c) + b * d;
        add(product);
    }

    double value() const { return high + low; }

private:
    static double upper_half(double x) {
        const double wide = 134217729.0 * x;  // 2^27 + 1
        return wide - (wide - x);
    }
};

}  // namespace gdpnet
