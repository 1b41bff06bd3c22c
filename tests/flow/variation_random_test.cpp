// Derivatives of random models against differences of runs.
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "derivatives.hpp"
#include "draw.hpp"

namespace saltus {
namespace {

/// A formula of the states that is linear or a little more.
std::string combination(Draw& draw, int n, double size) {
  std::string text;
  for (int i = 0; i < n; ++i) text += fmt::format(" + ({})*x{}", draw.number(-size, size), i);
  if (draw.whole(0, 2) == 0) text += fmt::format(" + {}*sin(x{})", draw.number(-size, size), draw.whole(0, n - 1));
  if (draw.whole(0, 2) == 0)
    text += fmt::format(" + {}*x{}*x{}", draw.number(-0.2, 0.2), draw.whole(0, n - 1), draw.whole(0, n - 1));
  return text;
}

std::string initial(Draw& draw, int n) {
  std::string text = "[initial]\n";
  for (int i = 0; i < n; ++i) text += fmt::format("x{} = {}\n", i, draw.number(-2, 2));
  return text;
}

/// States pulled back to zero, driven, with switches that add to the rates and multiply each other now and then.
std::string switched(Draw& draw) {
  const int n = draw.whole(1, 4), m = draw.whole(1, 3);
  std::string text = "equations = \"\"\"\n";
  for (int i = 0; i < m; ++i) {
    text += fmt::format("  h{} = x{} - p*({}) - {}*sin({}*t)\n", i, i % n, draw.number(-1, 1), draw.number(-0.5, 0.5),
                        draw.number(0.5, 2));
    const int kind = draw.whole(0, 3);
    text += kind < 3 ? fmt::format("  s{} = sign(h{})\n", i, i)
                     : fmt::format("  s{} = sign(h{} + 0.3*x{})\n", i, i, draw.whole(0, n - 1));
  }
  for (int i = 0; i < n; ++i) {
    text += fmt::format("  x{}' = -x{}{} + {}*cos(w*t)", i, i, combination(draw, n, 0.7), draw.number(-1.5, 1.5));
    for (int k = 0; k < m; ++k) text += fmt::format(" + ({})*s{}", draw.number(-2, 1), k);
    if (m > 1 && draw.whole(0, 2) == 0) text += fmt::format(" + {}*q*s0*s1", draw.number(-0.5, 0.5));
    if (draw.whole(0, 3) == 0) text += fmt::format(" + {}*q*s0*x{}", draw.number(-0.5, 0.5), draw.whole(0, n - 1));
    text += "\n";
  }
  return text + "\"\"\"\n[parameters]\np = 0.7\nq = 1.1\nw = 1.3\n" + initial(draw, n);
}

/// Blocks on a belt or on each other, with static friction above dynamic.
std::string stick_slip(Draw& draw) {
  const int n = draw.whole(1, 2);
  std::string text = "equations = \"\"\"\n";
  for (int i = 0; i < n; ++i) {
    const int j = (i + 1) % n;
    text += fmt::format("  x{0}' = v{0}\n  v{0}' = -k*x{0} - {1}*(x{0} - x{2}) - c*v{0} + {3}*sin(w*t)", i,
                        draw.number(0, 1), j, draw.number(0, 1.5));
    text += fmt::format(" - {}*sign(v{} - b, {})\n", draw.number(0.3, 1), i,
                        draw.whole(0, 1) ? fmt::format("1 + a*{}", draw.number(0.2, 1)) : "1");
  }
  text += "\"\"\"\n[parameters]\nk = 1.1\nc = 0.05\nb = 0.3\nw = 0.7\na = 0.8\n[initial]\n";
  for (int i = 0; i < n; ++i) text += fmt::format("x{} = {}\nv{} = {}\n", i, draw.number(-2, 2), i, draw.number(-1, 1));
  return text;
}

/// Masses between walls, some moving, some curved, some rough.
std::string walls(Draw& draw) {
  const int n = draw.whole(1, 2);
  std::string equations, constraints, start;
  for (int i = 0; i < n; ++i) {
    const int j = (i + 1) % n;
    const bool rough = draw.whole(0, 2) == 0, low = draw.whole(0, 3) > 0;
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = -g - k*x{0} - {1}*(x{0} - x{2}) + {3}*cos(w*t)*x{2} + N{0}/{4}",
                             i, draw.number(0, 1), j, draw.number(0, 1), draw.number(0.5, 2));
    if (low) equations += fmt::format(" - M{}*(1 + 0.2*x{}^2)", i, i);
    equations += "\n";
    if (rough)
      equations += fmt::format("  y{0}' = u{0}\n  u{0}' = -0.2*u{0} + {2}*sin(t) - {1}*m*N{0}*sign(u{0} - 0.1)\n", i,
                               draw.number(0.2, 1), draw.number(-1, 1));
    constraints += fmt::format(
        "[constraint.N{0}]\ngap = \"x{0} - {1}*sin(w*t) + 0.5 + {2}*x{0}^2\"\nrestitution = \"{3}\"\n", i,
        draw.number(-0.4, 0.4), draw.number(0, 0.2), draw.of<std::string>({"r", "0", "r/(1 + 0.1*v0^2)", "r^2"}));
    if (low) constraints += fmt::format("[constraint.M{0}]\ngap = \"3 - x{0}\"\nrestitution = \"r\"\n", i);
    start += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, draw.number(0.2, 2), draw.number(-2, 2));
    if (rough) start += fmt::format("y{0} = 0\nu{0} = {1}\n", i, draw.number(-2, 2));
  }
  return "equations = \"\"\"\n" + equations + "\"\"\"\n[parameters]\ng = 1.2\nk = 0.4\nw = 1.7\nr = 0.7\nm = 0.8\n" +
         constraints + "[initial]\n" + start;
}

/// Balls in a row that hit each other and two walls.
std::string row_of_balls(Draw& draw) {
  const int n = draw.whole(2, 3);
  std::string equations, constraints, start;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = v{0}\n  v{0}' = -k*x{0} + {1}*sin(w*t) + (N{0} - N{2})/{3}\n", i,
                             draw.number(-1, 1), i + 1, draw.number(0.5, 2));
    start += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, fmt::format("{:.3f}", i + draw.between(0.1, 0.9)),
                         draw.number(-2, 2));
  }
  for (int i = 0; i <= n; ++i) {
    const std::string gap = i == 0   ? "x0"
                            : i == n ? fmt::format("{} - x{}", n, n - 1)
                                     : fmt::format("x{} - x{}", i, i - 1);
    constraints +=
        fmt::format("[constraint.N{}]\ngap = \"{}\"\nrestitution = \"{}\"\n", i, gap, draw.whole(0, 3) ? "r" : "0");
  }
  return "equations = \"\"\"\n" + equations + "\"\"\"\n[parameters]\nk = 0.4\nw = 1.7\nr = 0.8\n" + constraints +
         "[initial]\n" + start;
}

/// Diodes with and without resistance in linear circuits.
std::string circuit(Draw& draw) {
  const int n = draw.whole(2, 3), m = draw.whole(1, 2);
  std::string equations, constraints;
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = -{1}*x{0}{2} + E*{3}*sin(w*t)", i, draw.number(0.2, 1),
                             combination(draw, n, 0.6), draw.number(-2, 2));
    for (int j = 0; j < m; ++j) {
      if (i == j) equations += fmt::format(" + {}*d{}", draw.number(0.5, 1.5), j);
    }
    equations += "\n";
  }
  for (int j = 0; j < m; ++j) {
    std::string gap = fmt::format("x{}", j);
    if (draw.whole(0, 1)) gap += fmt::format(" + R*{}*d{}", draw.number(0.2, 1), j);
    if (m == 2 && draw.whole(0, 2) == 0 && gap.find("R") != gap.npos) gap += fmt::format(" + R*0.2*d{}", 1 - j);
    constraints += fmt::format("[constraint.d{}]\ngap = \"{}\"\n", j, gap);
  }
  std::string start = "[initial]\n";
  for (int i = 0; i < n; ++i) start += fmt::format("x{} = {}\n", i, draw.number(0.2, 2));
  return "equations = \"\"\"\n" + equations + "\"\"\"\n[parameters]\nE = 1.2\nw = 1.7\nR = 0.5\n" + constraints + start;
}

/// Jumps on conditions and clocks, wraps and floors, with a switch among them.
std::string jumping(Draw& draw) {
  const int n = draw.whole(2, 3);
  std::string text = "equations = \"\"\"\n";
  for (int i = 0; i < n; ++i) {
    text += fmt::format("  x{0}' = -0.3*x{0}{1} + {2}", i, combination(draw, n, 0.5), draw.number(0.2, 1));
    if (draw.whole(0, 2) == 0)
      text +=
          fmt::format(" + {}*mod({}*x{} + t, P)", draw.number(-0.5, 0.5), draw.number(0.5, 1), draw.whole(0, n - 1));
    if (draw.whole(0, 2) == 0)
      text += fmt::format(" + {}*floor(x{} + P*t)", draw.number(-0.3, 0.3), draw.whole(0, n - 1));
    if (draw.whole(0, 2) == 0) text += fmt::format(" - {}*sign(x{} - a)", draw.number(0, 1), draw.whole(0, n - 1));
    text += "\n";
  }
  text += "\"\"\"\n[parameters]\nP = 1.3\na = 0.6\nT = 0.8\nc = 0.5\n";
  if (draw.whole(0, 1))
    text += fmt::format(
        "[jump.reset]\non = \"x0 - a*{}\"\ndirection = \"{}\"\nset = {{ x0 = \"c*x0 - {} + 0.2*x1\", x1 = \"x1 + "
        "0.1*t*x0\" }}\n",
        draw.number(0.5, 2), draw.of<std::string>({"rising", "any", "falling"}), draw.number(0, 1));
  if (draw.whole(0, 1))
    text += fmt::format(
        "[jump.tick]\nevery = \"T\"\nphase = \"{}*c\"\nset = {{ x{} = \"x1*c + {}*x0 + 0.1*max(x1, a)\" }}\n",
        draw.number(0, 1), n - 1, draw.number(-1, 1));
  if (draw.whole(0, 2) == 0) text += "[jump.some]\non = \"x1 - 2*a\"\nwhen = \"x0 > 0\"\nset = { x1 = \"a - x1*c\" }\n";
  return text + initial(draw, n);
}

/// Blocks that rub on the ground and on each other: forces that are not unique while they stick together.
std::string friction_network(Draw& draw) {
  const int n = draw.whole(2, 4);
  std::vector<std::string> force(static_cast<size_t>(n));
  std::string equations, rubbing, start = "[initial]\n";
  int count = 0;
  const auto rub = [&](int i, const std::string& speed, int other) {
    const std::string size = draw.number(0.1, 0.9);
    rubbing += fmt::format("  s{} = sign(v{} - {})\n", count, i, speed);
    force[static_cast<size_t>(i)] += fmt::format(" - {}*c*s{}", size, count);
    if (other >= 0) force[static_cast<size_t>(other)] += fmt::format(" + {}*c*s{}", size, count);
    ++count;
  };
  for (int i = 0; i < n; ++i) {
    if (draw.whole(0, 2)) rub(i, "b", -1);
    for (int j = i + 1; j < n; ++j) {
      if (draw.whole(0, 1)) rub(i, fmt::format("v{}", j), j);
    }
  }
  for (int i = 0; i < n; ++i) {
    equations +=
        fmt::format("  x{0}' = v{0}\n  v{0}' = ({1}*sin({2}*t + {3}) - k*x{0}{4})/{5}\n", i, draw.number(0.5, 2),
                    draw.number(0.5, 2), draw.number(0, 3), force[static_cast<size_t>(i)], draw.number(0.5, 1.5));
    start += fmt::format("x{0} = {1}\nv{0} = {2}\n", i, draw.number(-1, 1), draw.number(-1, 1));
  }
  return "equations = \"\"\"\n" + equations + rubbing + "\"\"\"\n[parameters]\nk = 0.5\nc = 1\nb = 0.05\n" + start;
}

std::string nested_formula(Draw& draw, int depth, int n) {
  if (depth == 0) {
    const int kind = draw.whole(0, 3);
    if (kind == 0) return fmt::format("{}*sin({}*t)", draw.number(-2, 2), draw.number(0.5, 2));
    if (kind == 1) return "p";
    return fmt::format("({}*x{} + {})", draw.number(-1.5, 1.5), draw.whole(0, n - 1), draw.number(-1, 1));
  }
  const std::string a = nested_formula(draw, depth - 1, n), b = nested_formula(draw, depth - 1, n);
  switch (draw.whole(0, 6)) {
    case 0: return "max(" + a + ", " + b + ")";
    case 1: return "min(" + a + ", " + b + ")";
    case 2: return "abs(" + a + " + " + b + ")";
    case 3: return "sat(" + a + ", -1, 1)";
    case 4: return "if(" + a + " > " + b + ", " + a + ", " + b + ")";
    case 5: return "0.5*sign(" + a + ")*abs(" + b + ")";
    default: return "sign(" + a + " - 2*x0)";  // slides wherever it can
  }
}

/// Kinks and switches inside each other.
std::string nested(Draw& draw) {
  const int n = draw.whole(1, 3);
  std::string equations, start = "[initial]\n";
  for (int i = 0; i < n; ++i) {
    equations += fmt::format("  x{0}' = -x{0} + {1}\n", i, nested_formula(draw, draw.whole(1, 3), n));
    start += fmt::format("x{0} = {1}\n", i, draw.number(-1, 1));
  }
  return "equations = \"\"\"\n" + equations + "\"\"\"\n[parameters]\np = 0.4\n" + start;
}

using Generator = std::string (*)(Draw&);

struct Tally {
  int compared = 0, skipped = 0;
  std::map<std::string, int> kinds;
};

/// So many models; how many could be compared.
Tally compare(Generator generate, int models, double until, unsigned seed) {
  Tally tally;
  for (int k = 0; k < models; ++k) {
    Draw draw(seed * 7919 + static_cast<unsigned>(k));
    const std::string text = generate(draw);
    std::optional<Derivatives> derivatives;
    try {
      derivatives.emplace(text, until);
    } catch (const Error& e) {
      ADD_FAILURE() << e.report() << "\n" << text;
      continue;
    }
    Mat exact;
    try {
      exact = derivatives->exact();
    } catch (const Error&) {  // a start that the model forbids
      ++tally.skipped;
      continue;
    }
    if (derivatives->end.why != Why::time) {
      ++tally.skipped;
      continue;
    }
    std::optional<Mat> coarse, fine;
    double d = 1e-4;
    for (; !fine && d > 1e-7; d /= 10) {
      coarse = derivatives->differences(d);
      fine = coarse ? derivatives->differences(d / 2) : std::nullopt;
    }
    if (!fine) {
      ++tally.skipped;
      continue;
    }
    ++tally.compared;
    const std::string& events = derivatives->events;
    const auto has = [](const std::string& where, const std::string& what) { return where.find(what) != where.npos; };
    for (const char* kind : {"cross", "slide", "leave", "impact", "close", "open", "chatter", "jump", "mode"})
      tally.kinds[kind] += has(events, std::string(kind) + "(") ? 1 : 0;
    tally.kinds["intersection"] += derivatives->intersections ? 1 : 0;
    tally.kinds["release"] += has(text, "1 + a*") && has(events, "leave(") ? 1 : 0;
    tally.kinds["degree 0"] += has(text, "R*") && has(events, "close(") ? 1 : 0;
    tally.kinds["degree 1"] += !has(text, "R*") && has(events, "close(") ? 1 : 0;
    tally.kinds["clock"] += has(events, "jump(tick)") ? 1 : 0;
    tally.kinds["wrap"] += derivatives->wraps > 0 ? 1 : 0;
    const double size = 1 + fine->max_abs();
    const double doubt = (*coarse - *fine).max_abs();
    const double error = (exact - *fine).max_abs();
    if (error <= 1e-6 * size + 10 * doubt && exact.allFinite()) continue;
    std::string notes;
    for (const std::string& n : derivatives->notes) notes += n + "\n";
    ADD_FAILURE() << "model " << k << ", error " << error << ", doubt " << doubt << "\n"
                  << text << "until " << until << "\n"
                  << derivatives->events << "\n"
                  << notes << "exact\n"
                  << exact << "\ndifferences\n"
                  << *fine;
  }
  return tally;
}

/// Every kind that is named was met, and differentiated, in three models at least.
void expect_kinds(const Tally& tally, int compared, std::initializer_list<const char*> kinds) {
  EXPECT_GE(tally.compared, compared);
  for (const char* kind : kinds) EXPECT_GE(tally.kinds.contains(kind) ? tally.kinds.at(kind) : 0, 3) << kind;
}

TEST(RandomVariation, CrossesSlidesAndLeavesOneAndSeveralSurfaces) {
  expect_kinds(compare(switched, 120, 5, 1), 100, {"cross", "slide", "leave", "mode", "intersection"});
}
TEST(RandomVariation, HoldsAndReleases) {
  expect_kinds(compare(stick_slip, 60, 12, 2), 50, {"cross", "slide", "leave", "release"});
}
TEST(RandomVariation, HitsWallsWithAndWithoutFriction) {
  expect_kinds(compare(walls, 120, 5, 3), 100, {"impact", "close", "open", "chatter", "slide", "leave"});
}
TEST(RandomVariation, HitsBallsInARow) {
  expect_kinds(compare(row_of_balls, 300, 3, 4), 270, {"impact", "close", "open"});
}
TEST(RandomVariation, SticksByForcesThatAreNotUnique) {
  expect_kinds(compare(friction_network, 60, 6, 7), 55, {"cross", "slide", "leave", "mode", "intersection"});
}
TEST(RandomVariation, PassesKinksInsideEachOther) { expect_kinds(compare(nested, 250, 5, 8), 230, {"cross", "slide"}); }
TEST(RandomVariation, ConductsAndBlocks) {
  expect_kinds(compare(circuit, 60, 6, 5), 50, {"close", "open", "degree 0", "degree 1"});
}
TEST(RandomVariation, JumpsTicksAndWraps) {
  expect_kinds(compare(jumping, 120, 3, 6), 100, {"jump", "clock", "wrap", "cross", "slide"});
}

}  // namespace
}  // namespace saltus
