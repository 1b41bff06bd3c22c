// A thousand random piecewise-linear systems against the exact reference of linear_reference.hpp: event times, kinds of
// events, modes and final states. Situations decided by rounding are left out; there must be few.
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "linear_reference.hpp"
#include "physics.hpp"

namespace saltus::physics {
namespace {

using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

/// A system as text for saltus and as matrices for the reference, made side by side.
class Twin {
 public:
  explicit Twin(unsigned seed) : random_(seed) {}

  LinearSystem linear;
  std::string text;

  double number(double low, double high) { return std::uniform_real_distribution<>(low, high)(random_); }
  int integer(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  bool chance(double p) { return number(0, 1) < p; }

  void states(int n, double w) {
    linear.states = n;
    linear.w = w;
    rates_.assign(static_cast<size_t>(n), "0");
    linear.start = VectorXd::Zero(n + 3);
    linear.start(n + 1) = linear.start(n + 2) = 1;
    MatrixXd rotation = MatrixXd::Zero(n + 3, n + 3);
    rotation(n, n + 1) = w;
    rotation(n + 1, n) = -w;
    linear.terms.push_back({0, rotation});
  }

  /// A linear form: coefficients of the states, of sin(w t), of 1.
  RowVectorXd form() const { return RowVectorXd::Zero(linear.states + 3); }
  RowVectorXd constant(double value) const {
    RowVectorXd r = form();
    r(linear.states + 2) = value;
    return r;
  }
  RowVectorXd state(int i) const {
    RowVectorXd r = form();
    r(i) = 1;
    return r;
  }
  RowVectorXd drive(double amplitude) const {
    RowVectorXd r = form();
    r(linear.states) = amplitude;
    return r;
  }
  RowVectorXd random_form(double size, double offset) {
    RowVectorXd r = form();
    for (int i = 0; i < linear.states; ++i) r(i) = number(-size, size);
    r(linear.states + 2) = number(-offset, offset);
    return r;
  }

  std::string print(const RowVectorXd& r) const {
    std::string out;
    const int n = linear.states;
    for (int i = 0; i < n + 3; ++i) {
      if (r(i) == 0) continue;
      const std::string factor = i < n    ? fmt::format("*x{}", i)
                                 : i == n ? fmt::format("*sin({:.17g}*t)", linear.w)
                                          : "";
      out += fmt::format("{}{:.17g}{}", out.empty() ? "" : " + ", r(i), factor);
    }
    return out.empty() ? "0" : out;
  }

  int surface(const RowVectorXd& c, double hold = 1) {
    linear.surfaces.push_back({c, hold});
    return static_cast<int>(linear.surfaces.size()) - 1;
  }
  std::string sign(int i) const {
    const LinearSurface& s = linear.surfaces[static_cast<size_t>(i)];
    return s.hold > 1 ? fmt::format("sign({}, {:.17g})", print(s.c), s.hold) : fmt::format("sign({})", print(s.c));
  }
  std::string positive(int i) const {
    return fmt::format("({}) > 0", print(linear.surfaces[static_cast<size_t>(i)].c));
  }

  /// rate of state i += factor * (product of switches) * form
  void add(int i, unsigned switches, const RowVectorXd& r) {
    MatrixXd M = MatrixXd::Zero(linear.states + 3, linear.states + 3);
    M.row(i) = r;
    linear.terms.push_back({switches, M});
  }
  void write(int i, const std::string& formula) { rates_[static_cast<size_t>(i)] += " + " + formula; }

  void smooth(int i, const RowVectorXd& r) {
    add(i, 0, r);
    write(i, print(r));
  }
  void relay(int i, int s, double strength) {
    add(i, 1u << s, constant(strength));
    if (linear.surfaces[static_cast<size_t>(s)].hold == 1 && chance(0.3))
      write(i, fmt::format("if({}, {:.17g}, {:.17g})", positive(s), strength, -strength));
    else
      write(i, fmt::format("({:.17g})*{}", strength, sign(s)));
  }

  void finish() {
    std::string equations, initial;
    for (int i = 0; i < linear.states; ++i) {
      equations += fmt::format("x{}' = {}\n", i, rates_[static_cast<size_t>(i)]);
      initial += fmt::format("x{} = {:.17g}\n", i, linear.start(i));
    }
    text = model_text(equations, initial);
  }

 private:
  std::mt19937 random_;
  std::vector<std::string> rates_;
};

void random_start(Twin& s) {
  for (int i = 0; i < s.linear.states; ++i) s.linear.start(i) = s.number(-2, 2);
}

void random_linear_part(Twin& s) {
  for (int i = 0; i < s.linear.states; ++i) {
    RowVectorXd r = s.random_form(1, 0.5);
    r(i) -= 0.6;
    if (s.chance(0.5)) r += s.drive(s.number(-2, 2));
    s.smooth(i, r);
  }
}

/// Relays anywhere, on any surfaces, some of them moving.
Twin additive(unsigned seed) {
  Twin s(seed);
  s.states(s.integer(1, 4), s.number(0.5, 4));
  random_linear_part(s);
  const int m = s.integer(1, 4);
  for (int k = 0; k < m; ++k) {
    RowVectorXd c = s.random_form(1, 0.5);
    if (s.chance(0.3)) c += s.drive(s.number(-0.5, 0.5));
    const int surface = s.surface(c);
    for (int i = 0; i < s.linear.states; ++i) s.relay(i, surface, s.number(-1, 0.4) * (c(i) > 0 ? 1 : -1));
  }
  random_start(s);
  return s;
}

/// Relays that attract to their surfaces, so that motion on intersections is common.
Twin intersections(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(2, 4), m = s.integer(2, std::min(n, 3));
  s.states(n, s.number(0.5, 4));
  random_linear_part(s);
  for (int k = 0; k < m; ++k) {
    RowVectorXd c = s.form();
    for (int i = 0; i < n; ++i) c(i) = (i == k ? 1 : 0) + s.number(-0.3, 0.3);
    c += s.constant(s.number(-0.3, 0.3));
    const int surface = s.surface(c);
    for (int i = 0; i < n; ++i) s.relay(i, surface, i == k ? s.number(-2.5, -1) : s.number(-0.4, 0.4));
  }
  random_start(s);
  return s;
}

/// Many relays in a ring, most of them on their surfaces from the start.
Twin ring(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(5, 8);
  s.states(n, s.number(0.5, 2));
  for (int i = 0; i < n; ++i) s.surface(s.state(i));
  for (int i = 0; i < n; ++i) {
    s.smooth(i, s.constant(s.number(-0.4, 0.4)) + s.drive(s.number(-1.2, 1.2)));
    s.relay(i, i, -s.number(0.6, 1.5));
    s.relay(i, (i + 1) % n, s.number(-0.3, 0.3));
    s.linear.start(i) = s.chance(0.6) ? 0 : s.number(-1, 1);
  }
  return s;
}

/// Masses on springs with friction on the floor or on belts; static above dynamic friction.
Twin friction_chain(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(1, 4);
  s.states(2 * n, s.number(0.3, 2));
  const bool rest = s.chance(0.3);
  std::vector<double> belt(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    s.linear.start(i) = s.number(-2, 2);
    belt[static_cast<size_t>(i)] = s.chance(0.5) ? 0 : s.number(-0.5, 0.5);
    s.linear.start(n + i) = rest ? belt[static_cast<size_t>(i)] : s.number(-2, 2);
  }
  for (int i = 0; i < n; ++i) {
    s.smooth(i, s.state(n + i));
    RowVectorXd force = s.state(i) * s.number(-2, -0.5) - s.state(n + i) * s.number(0, 0.2);
    for (const int j : {i - 1, i + 1}) {
      if (j >= 0 && j < n) force += s.number(0.2, 1.5) * (s.state(j) - s.state(i));
    }
    if (s.chance(0.7)) force += s.drive(s.number(-2, 2));
    s.smooth(n + i, force);
    const int surface =
        s.surface(s.state(n + i) - s.constant(belt[static_cast<size_t>(i)]), s.chance(0.6) ? s.number(1.05, 2) : 1);
    s.relay(n + i, surface, -s.number(0.2, 1.2));
  }
  return s;
}

/// A stack of masses that rub on each other, the lowest on the floor.
Twin relative_friction(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(2, 4);
  s.states(2 * n, s.number(0.3, 2));
  for (int i = 0; i < 2 * n; ++i) s.linear.start(i) = s.number(-1, 1);
  std::vector<double> mass;
  for (int i = 0; i < n; ++i) mass.push_back(s.number(0.3, 2));
  for (int i = 0; i < n; ++i) {
    s.smooth(i, s.state(n + i));
    RowVectorXd force = s.state(i) * s.number(-2, -0.3);
    if (s.chance(0.6)) force += s.drive(s.number(-1.5, 1.5));
    s.smooth(n + i, force / mass[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < n; ++i) {
    const bool floor = i == n - 1;
    if (floor && s.chance(0.5)) break;
    const RowVectorXd slip = floor ? s.state(n + i) : RowVectorXd(s.state(n + i) - s.state(n + i + 1));
    const int surface = s.surface(slip, s.chance(0.3) ? s.number(1.05, 1.5) : 1);
    const double strength = s.number(0.1, 0.8);
    s.relay(n + i, surface, -strength / mass[static_cast<size_t>(i)]);
    if (!floor) s.relay(n + i + 1, surface, strength / mass[static_cast<size_t>(i + 1)]);
  }
  return s;
}

/// Continuous kinks (sat, min, max, abs) beside a relay and a nested `if`.
Twin nested(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(2, 4);
  s.states(n, s.number(0.5, 3));
  random_linear_part(s);
  const RowVectorXd u = s.random_form(1, 0.3), v = s.random_form(0.8, 0.3);
  const int i = s.integer(0, n - 1);
  const double gain = s.number(-2, 2);
  switch (s.integer(0, 3)) {
    case 0: {  // sat(u, -1, 1) = u (a - b)/2 + (a + b)/2
      const int a = s.surface(u + s.constant(1)), b = s.surface(u - s.constant(1));
      s.add(i, 1u << a, gain * (u + s.constant(1)) / 2);
      s.add(i, 1u << b, -gain * (u - s.constant(1)) / 2);
      s.write(i, fmt::format("({:.17g})*sat({}, -1, 1)", gain, s.print(u)));
      break;
    }
    case 1: {
      const int a = s.surface(u - v);
      s.add(i, 0, gain * (u + v) / 2);
      s.add(i, 1u << a, -gain * (u - v) / 2);
      s.write(i, fmt::format("({:.17g})*min({}, {})", gain, s.print(u), s.print(v)));
      break;
    }
    case 2: {
      const int a = s.surface(u - v);
      s.add(i, 0, gain * (u + v) / 2);
      s.add(i, 1u << a, gain * (u - v) / 2);
      s.write(i, fmt::format("({:.17g})*max({}, {})", gain, s.print(u), s.print(v)));
      break;
    }
    default: {
      const int a = s.surface(u);
      s.add(i, 1u << a, gain * u);
      s.write(i, fmt::format("({:.17g})*abs({})", gain, s.print(u)));
    }
  }
  const int k = s.integer(0, n - 1), outer = s.surface(s.random_form(1, 0.3)), inner = s.surface(s.random_form(1, 0.3));
  const double p = s.number(-1, 1), q = s.number(-1, 1), r = s.number(-1, 1);
  s.add(k, 0, s.constant(p / 4 + q / 4 + r / 2));
  s.add(k, 1u << outer, s.constant(p / 4 + q / 4 - r / 2));
  s.add(k, 1u << inner, s.constant(p / 4 - q / 4));
  s.add(k, 1u << outer | 1u << inner, s.constant(p / 4 - q / 4));
  s.write(k, fmt::format("if({}, if({}, {:.17g}, {:.17g}), {:.17g})", s.positive(outer), s.positive(inner), p, q, r));
  random_start(s);
  return s;
}

/// Another constant field in each of the regions cut out by two or three surfaces.
Twin multiplicative(unsigned seed) {
  Twin s(seed);
  const int n = s.integer(2, 3), m = s.integer(2, 3);
  s.states(n, s.number(0.5, 3));
  random_linear_part(s);
  for (int k = 0; k < m; ++k) s.surface(s.random_form(1, 0.4));
  for (int i = 0; i < n; ++i) {
    const int a = i % (m - 1), b = a + 1;  // every surface is used
    const double p = s.number(-1, 1), q = s.number(-1, 1), r = s.number(-0.5, 0.5);
    s.relay(i, a, p);
    s.relay(i, b, q);
    s.add(i, 1u << a | 1u << b, s.constant(r));
    s.write(i, fmt::format("({:.17g})*{}*{}", r, s.sign(a), s.sign(b)));
  }
  random_start(s);
  return s;
}

std::string difference(const LinearRun& wanted, const Trajectory& run, int states) {
  if (run.end.why != Why::time) return "ended early";
  const auto found = changes(run);
  for (size_t i = 0; i < std::min(found.size(), wanted.events.size()); ++i) {
    if (std::abs(found[i].t - wanted.events[i].t) > 1e-9 || kind_name(found[i].kind) != wanted.events[i].kind)
      return fmt::format("event {}: expected {} at {:.17g}", i, wanted.events[i].kind, wanted.events[i].t);
  }
  if (found.size() != wanted.events.size()) return fmt::format("expected {} events", wanted.events.size());
  for (int i = 0; i < states; ++i) {
    if (std::abs(run.end.state[static_cast<size_t>(i)] - wanted.end(i)) > 1e-8)
      return fmt::format("expected x{} = {:.17g}", i, wanted.end(i));
  }
  return "";
}

std::string describe(const LinearRun& run) {
  std::string text = "reference: " + run.start_mode + "\n";
  for (const auto& e : run.events) text += fmt::format("  {:.17g} {} {} -> {}\n", e.t, e.kind, e.before, e.after);
  return text;
}

void compare(Twin (*make)(unsigned), unsigned first_seed) {
  constexpr int samples = 150;
  constexpr double until = 8;
  int skipped = 0, events = 0, failed = 0;
  std::map<std::string, int> reasons;
  std::map<std::string, int> kinds;
  for (unsigned k = 0; k < samples; ++k) {
    Twin twin = make(first_seed + k);
    twin.finish();
    const LinearRun wanted = LinearReference(twin.linear, until).run();
    if (!wanted.degenerate.empty()) {
      ++skipped;
      ++reasons[wanted.degenerate];
      continue;
    }
    events += static_cast<int>(wanted.events.size());
    for (const auto& e : wanted.events) ++kinds[e.kind];
    const System s(read_model_text(twin.text));
    const Trajectory run = s.run_both(until);
    const std::string wrong = difference(wanted, run, twin.linear.states);
    if (!wrong.empty()) {
      ++failed;
      ADD_FAILURE() << "seed " << first_seed + k << ": " << wrong << "\n"
                    << twin.text << story(run) << describe(wanted);
    }
    if (failed > 5) break;
  }
  std::string summary = fmt::format("{} systems, {} left out", samples, skipped);
  for (const auto& [why, n] : reasons) summary += fmt::format(", {}: {}", why, n);
  summary += fmt::format("; {} events", events);
  for (const auto& [kind, n] : kinds) summary += fmt::format(", {}: {}", kind, n);
  std::cout << summary << "\n";
  EXPECT_LT(skipped, 0.15 * samples);
  EXPECT_GT(events, samples);
}

TEST(RandomPiecewiseLinear, AdditiveRelays) { compare(additive, 1000); }
TEST(RandomPiecewiseLinear, Intersections) { compare(intersections, 2000); }
TEST(RandomPiecewiseLinear, RingsOfRelays) { compare(ring, 7000); }
TEST(RandomPiecewiseLinear, FrictionChains) { compare(friction_chain, 3000); }
TEST(RandomPiecewiseLinear, RelativeFriction) { compare(relative_friction, 4000); }
TEST(RandomPiecewiseLinear, NestedConditionsAndKinks) { compare(nested, 5000); }
TEST(RandomPiecewiseLinear, MultipliedSwitches) { compare(multiplicative, 6000); }

}  // namespace
}  // namespace saltus::physics
