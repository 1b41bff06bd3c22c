#include "model/period.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <unordered_map>

#include "expr/interpolant.hpp"

namespace saltus {
namespace {

/// How a formula depends on time while everything else is held fixed.
struct InTime {
  bool evident = true;        ///< false: neither linear nor periodic as far as we can see
  bool constant = false;      ///< in parameters and constants only
  Expr slope = 0.0;           ///< of the part linear in t, in parameters and constants
  std::vector<Expr> periods;  ///< of the periodic parts

  bool linear() const { return evident && periods.empty(); }
  bool steady() const { return linear() && slope.is_number(0); }
};

void unite(std::vector<Expr>& periods, const std::vector<Expr>& more) {
  for (const Expr& p : more) {
    if (std::find(periods.begin(), periods.end(), p) == periods.end()) periods.push_back(p);
  }
}

/// n*pi/slope; where the slope is a multiple of pi, pi is cancelled (2*pi*f gives 1/f).
Expr turns(double n, const Expr& slope) {
  double number = 1;
  int pis = 0;
  Expr rest = 1.0;
  std::vector<Expr> stack{slope};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e.op() == Op::mul) {
      stack.push_back(e.argument(1));
      stack.push_back(e.argument(0));
    } else if (e.op() == Op::neg) {
      number = -number;
      stack.push_back(e.argument(0));
    } else if (e.is_number()) {
      number *= e.value();
    } else if (e == pi()) {
      ++pis;
    } else {
      rest = rest * e;
    }
  }
  if (pis != 1) return Expr(n) * pi() / slope;
  return Expr(n / number) / rest;
}

class TimeAnalysis {
 public:
  /// `zeros`: what a parameter with the value 0 multiplies does not count.
  TimeAnalysis(const Model& model, const std::vector<double>& parameters, bool zeros = false)
      : model_(model), parameters_(parameters), zeros_(zeros) {}

  InTime operator()(const Expr& root) {
    // Names are analysed before the formulas that use them, by a list: they may chain deeply.
    std::vector<Expr> pending{root};
    while (!pending.empty()) {
      const Expr top = pending.back();
      bool ready = true;
      const auto nodes = postorder(std::span(&top, 1));
      for (const Expr& e : nodes) {
        if (!e.is_symbol(SymbolKind::definition) || done_.contains(meaning(e))) continue;
        pending.push_back(meaning(e));
        ready = false;
      }
      if (!ready) continue;
      for (const Expr& e : nodes) {
        if (!done_.contains(e)) done_.emplace(e, analyse(e));
      }
      pending.pop_back();
    }
    return done_.at(root);
  }

 private:
  const Expr& meaning(const Expr& name) const {
    return model_.definitions[static_cast<size_t>(name.symbol().index)].value;
  }

  InTime analyse(const Expr& e) const {
    if (e.is_symbol(SymbolKind::time)) return {.slope = 1.0};
    if (e.is_symbol(SymbolKind::definition)) return done_.at(meaning(e));
    if (e.size() == 0) {
      return {.constant = e.is_number() || is_constant(e)};
    }
    std::vector<InTime> a;
    for (size_t i = 0; i < e.size(); ++i) a.push_back(done_.at(e.argument(i)));
    if (std::all_of(a.begin(), a.end(), [](const InTime& p) { return p.constant; })) return {.constant = true};
    if (zeros_ && vanishes(e, a)) return {};
    if (std::all_of(a.begin(), a.end(), [](const InTime& p) { return p.linear(); })) {
      switch (e.op()) {
        case Op::add: return {.slope = a[0].slope + a[1].slope};
        case Op::sub: return {.slope = a[0].slope - a[1].slope};
        case Op::neg: return {.slope = -a[0].slope};
        case Op::mul:
          if (a[1].constant) return {.slope = a[0].slope * e.argument(1)};
          if (a[0].constant) return {.slope = e.argument(0) * a[1].slope};
          break;
        case Op::div:
          if (a[1].constant) return {.slope = a[0].slope / e.argument(1)};
          break;
        case Op::sin:
        case Op::cos: return wave(turns(2, a[0].slope), a[0]);
        case Op::tan: return wave(turns(1, a[0].slope), a[0]);
        case Op::table:
          if (const Interpolant& curve = *e.argument(1).symbol().curve; curve.outside() == Outside::repeat)
            return wave(Expr(curve.period()) / a[0].slope, a[0]);
          break;
        case Op::mod:
          if (a[1].constant) return wave(e.argument(1) / a[0].slope, a[0]);
          break;
        default: break;
      }
    }
    return repeats_with(a);
  }

  /// A product with a constant factor that is zero.
  bool vanishes(const Expr& e, const std::vector<InTime>& a) const {
    const auto zero = [&](size_t i) { return a[i].constant && constant_value(e.argument(i), parameters_) == 0; };
    return (e.op() == Op::mul && (zero(0) || zero(1))) || (e.op() == Op::div && zero(0));
  }

  /// Something that repeats as its linear argument advances; a frequency of value 0 is no dependence on time.
  InTime wave(const Expr& period, const InTime& argument) const {
    if (argument.steady() || constant_value(argument.slope, parameters_) == 0) return {};
    return {.periods = {constant_value(period, parameters_) < 0 ? -period : period}};
  }

  /// A function of parts that are steady or periodic is periodic.
  InTime repeats_with(const std::vector<InTime>& a) const {
    InTime out;
    for (const InTime& part : a) {
      out.evident = out.evident && part.evident && part.slope.is_number(0);
      unite(out.periods, part.periods);
    }
    return out;
  }

  const Model& model_;
  const std::vector<double>& parameters_;
  bool zeros_;
  ExprMap<InTime> done_;
};

struct WholeRatio {
  int64_t p = 0, q = 1;
};

/// The fraction with a small denominator that equals x up to rounding.
std::optional<WholeRatio> as_fraction(double x) {
  const int64_t largest = 1000;
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = x;
  for (int i = 0; i < 20 && rest < 1e9; ++i) {
    const int64_t whole = static_cast<int64_t>(std::floor(rest));
    const int64_t p = whole * p1 + p0, q = whole * q1 + q0;
    if (p > largest || q > largest) break;
    if (std::abs(static_cast<double>(p) - x * static_cast<double>(q)) <= 1e-12 * static_cast<double>(p))
      return WholeRatio{p, q};
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return std::nullopt;
}

/// The least time that is a whole multiple of every period: with T_i = T_0 p_i/q_i it is T_0 lcm(p_i)/gcd(q_i).
std::optional<Period> common_period(const std::vector<Expr>& periods, const std::vector<double>& parameters) {
  if (periods.empty()) return std::nullopt;
  const double first = constant_value(periods[0], parameters);
  WholeRatio multiple{1, 0};
  for (const Expr& period : periods) {
    const double value = constant_value(period, parameters);
    if (!(value > 0) || !std::isfinite(value)) return std::nullopt;
    const auto ratio = as_fraction(value / first);
    if (!ratio) return std::nullopt;
    multiple = {std::lcm(multiple.p, ratio->p), std::gcd(multiple.q, ratio->q)};
    if (multiple.p > 1'000'000) return std::nullopt;
  }
  const double factor = static_cast<double>(multiple.p) / static_cast<double>(multiple.q);
  for (const Expr& period : periods) {  // prefer one of the periods as it stands
    const double value = constant_value(period, parameters);
    if (std::abs(value - first * factor) <= 1e-12 * value) return Period{period, value};
  }
  const Expr formula = Expr(static_cast<double>(multiple.p)) * periods[0] / Expr(static_cast<double>(multiple.q));
  return Period{formula, constant_value(formula, parameters)};
}

std::vector<Expr> formulas_that_move(const Model& model) {
  std::vector<Expr> all;
  for (const State& s : model.states) all.push_back(s.rate);
  for (const Balance& b : model.balances) {
    all.push_back(b.left);
    all.push_back(b.right);
  }
  for (const Constraint& c : model.constraints) {
    all.push_back(c.gap);
    if (c.friction) all.push_back(*c.friction);
    all.insert(all.end(), c.slip.begin(), c.slip.end());
    if (c.restitution) all.push_back(*c.restitution);
  }
  for (const Jump& j : model.jumps) {
    all.push_back(j.on);
    if (j.when) all.push_back(*j.when);
    for (const Assignment& a : j.set) all.push_back(a.value);
  }
  return all;
}

}  // namespace

std::optional<Period> period_in_time(const Model& model, const std::vector<double>& parameters) {
  std::vector<Expr> periods;
  for (const Jump& j : model.jumps) {
    if (j.every) unite(periods, {*j.every});
  }
  TimeAnalysis analysis(model, parameters);
  for (const Expr& e : formulas_that_move(model)) {
    const InTime part = analysis(e);
    if (!part.evident || !part.slope.is_number(0)) return std::nullopt;
    unite(periods, part.periods);
  }
  return common_period(periods, parameters);
}

bool time_counts(const Model& model, const std::vector<double>& parameters) {
  if (model.autonomous()) return false;
  if (std::any_of(model.jumps.begin(), model.jumps.end(), [](const Jump& j) { return j.every.has_value(); }))
    return true;
  TimeAnalysis analysis(model, parameters, true);
  const std::vector<Expr> all = formulas_that_move(model);
  return std::any_of(all.begin(), all.end(), [&](const Expr& e) { return !analysis(e).steady(); });
}

}  // namespace saltus
