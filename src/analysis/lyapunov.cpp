#include "analysis/lyapunov.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "expr/diff.hpp"

namespace saltus {
namespace {

constexpr double nearly_null = 1e-6;  ///< singular values of A - iw that count as zero

/// s: the place along a line x + s u, where the symbol of time is free and lambdas stand for u.
Expr place_on_line() { return time_symbol(); }

Expr direction(int state) { return Expr::symbol(SymbolKind::lambda, state, "u"); }

/// Rates of a mode along lines, as formulas of x, u and s.
ExprMap<Expr> line_in_mode(const Model& model, const Arc& arc, double t, std::span<const Expr> rates) {
  ExprMap<Expr> values;
  for (const Expr& e : symbols_in(rates)) {
    const int i = e.symbol().index;
    switch (e.symbol().kind) {
      case SymbolKind::state: values[e] = e + place_on_line() * direction(i); break;
      case SymbolKind::time: values[e] = Expr(t); break;
      case SymbolKind::sigma: values[e] = Expr(arc.mode.switches[at(i)] == '-' ? -1.0 : 1.0); break;
      case SymbolKind::lambda: values[e] = Expr(0.0); break;
      case SymbolKind::counter: values[e] = Expr(arc.counters[at(i)]); break;
      case SymbolKind::definition: values[e] = model.form.definitions[at(i)]; break;
      default: break;
    }
  }
  return values;
}

/// [A - re, im; -im, A - re] (a, b) is the real and the imaginary part of (A - re - i im)(a + ib).
Mat shifted(const Mat& A, double re, double im) {
  const Index n = A.rows();
  Mat out = Mat::Zero(2 * n, 2 * n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) out(i, j) = out(n + i, n + j) = A(i, j) - (i == j ? re : 0.0);
    out(i, n + i) = im;
    out(n + i, i) = -im;
  }
  return out;
}

}  // namespace

LyapunovCoefficient::LyapunovCoefficient(const Model& model, const Arc& arc, double t) {
  const auto rests = [](char c) { return c != '+' && c != '-'; };
  const std::string &switches = arc.mode.switches, &constraints = arc.mode.constraints;
  if (std::any_of(switches.begin(), switches.end(), rests) || constraints.find('c') != std::string::npos) return;
  const ExprMap<Expr> values = line_in_mode(model, arc, t, model.form.f);
  Derivative by_s(place_on_line());
  for (const Expr& rate : model.form.f) {
    const Expr second = by_s(by_s(substitute(rate, values)));
    rates_.push_back({Plain(second), Plain(by_s(second))});
  }
}

Vec LyapunovCoefficient::along(int order, const Vec& u) {
  Vec out(u.size());
  const PlainInputs inputs{.parameters = parameters_, .states = x_, .lambdas = {u.begin(), u.end()}};
  for (size_t i = 0; i < rates_.size(); ++i) out[ix(i)] = (order == 2 ? rates_[i].second : rates_[i].third)(inputs);
  return out;
}

Vec LyapunovCoefficient::second(const Vec& u, const Vec& v) { return 0.25 * (along(2, u + v) - along(2, u - v)); }

LyapunovCoefficient::Complex LyapunovCoefficient::second(const Complex& u, const Complex& v) {
  return {second(u.re, v.re) - second(u.im, v.im), second(u.re, v.im) + second(u.im, v.re)};
}

LyapunovCoefficient::Complex LyapunovCoefficient::third(const Complex& q) {
  const Vec sum = along(3, q.re + q.im), difference = along(3, q.re - q.im);
  const Vec first = along(3, q.re), last = along(3, q.im);
  // C(a,b,b) = (C(a+b)^3 + C(a-b)^3 - 2 C a^3)/6, C(a,a,b) likewise.
  return {first + (sum + difference - 2 * first) / 6, last + (sum - difference - 2 * last) / 6};
}

std::optional<double> LyapunovCoefficient::at(const Mat& A, std::span<const double> x,
                                              std::span<const double> parameters) {
  const Index n = A.rows();
  x_ = x;
  parameters_ = parameters;
  std::complex<double> pair = 0;
  for (const std::complex<double>& z : eigenvalues(A)) {
    const bool nearer = pair == 0.0 || std::abs(z.real()) < std::abs(pair.real());
    if (z.imag() > 0 && nearer) pair = z;
  }
  if (!exists() || !(pair.imag() > 0)) return std::nullopt;
  const auto null_pair = [&](const Mat& B, double im) -> std::optional<Complex> {
    const Mat space = null_space(shifted(B, pair.real(), im), nearly_null);
    if (space.cols() == 0) return std::nullopt;
    return Complex{Vec(space.col(0)).head(n), Vec(space.col(0)).tail(n)};
  };
  const double w = pair.imag();
  const std::optional<Complex> q = null_pair(A, w), p = null_pair(A.transpose(), -w);
  if (!q || !p) return std::nullopt;
  const Complex back{q->re, -q->im};
  const auto solve = [n](const Mat& B, const Complex& r) {
    Vec right(2 * n);
    right << r.re, r.im;
    const Vec y = Lu(B).solve(right);
    return Complex{y.head(n), y.tail(n)};
  };
  const Complex mean = solve(shifted(A, 0, 0), second(*q, back));
  const Complex twice = solve(shifted(A, 0, 2 * w), second(*q, *q));  // (A - 2iw)^-1
  const Complex cubic = third(*q), by_mean = second(*q, mean), by_twice = second(back, twice);
  const Complex sum{cubic.re - 2 * by_mean.re - by_twice.re, cubic.im - 2 * by_mean.im - by_twice.im};
  const auto product = [](const Complex& a, const Complex& b) {  // a* . b
    return std::complex<double>(a.re.dot(b.re) + a.im.dot(b.im), a.re.dot(b.im) - a.im.dot(b.re));
  };
  const double out = (product(*p, sum) / product(*p, *q)).real() / (2 * w);
  return std::isfinite(out) ? std::optional(out) : std::nullopt;
}

}  // namespace saltus
