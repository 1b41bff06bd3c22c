// Parts of a chain: what is alike has one program, which gives the rates of each.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "code/jet.hpp"
#include "model/read.hpp"
#include "model/subsystem.hpp"

namespace saltus {
namespace {

/// Blocks with springs and friction of their own; in `shared` a block's springs are one constant, elsewhere two.
Program chain_of(int n, int shared) {
  std::string equations, initial;
  for (int i = 0; i < n; ++i) {
    const double left = 1 + 0.13 * i, right = i == shared ? left : left + 0.057;
    equations +=
        fmt::format("  x{0}' = v{0}\n  v{0}' = 0.1*t - {1}*sign(v{0}, {2})", i, 0.511 + 0.21 * i, 1.2 + 0.1 * i);
    if (i > 0) equations += fmt::format(" - {}*(x{} - x{})", left, i, i - 1);
    if (i + 1 < n) equations += fmt::format(" - {}*(x{} - x{})", right, i, i + 1);
    equations += "\n";
    initial += fmt::format("x{0} = 0\nv{0} = 0\n", i);
  }
  return Program(read_model_text("equations = \"\"\"\n" + equations + "\"\"\"\n[initial]\n" + initial, "chain"));
}

/// States and surfaces of the blocks first..last.
Subsystem blocks(int first, int last) {
  Subsystem part;
  for (int i = first; i <= last; ++i) {
    part.states.push_back(2 * i);
    part.states.push_back(2 * i + 1);
    part.unknowns.push_back(i);
  }
  return part;
}

std::vector<int> key_of(Subsystems& parts, Subsystem part) {
  const std::span<const int> key = parts.look(part).key();
  return {key.begin(), key.end()};
}

TEST(Subsystems, OfOneShapeHaveOneKey) {
  const Program program = chain_of(12, 7);
  const ModeTape& mode = program.tape(std::string(12, '+'));
  Subsystems parts(program, mode, {});
  EXPECT_EQ(key_of(parts, blocks(2, 4)), key_of(parts, blocks(3, 5)));
  EXPECT_NE(key_of(parts, blocks(2, 4)), key_of(parts, blocks(2, 5)));
  EXPECT_NE(key_of(parts, blocks(2, 4)), key_of(parts, blocks(0, 2)));  // nothing to the left
  EXPECT_NE(key_of(parts, blocks(2, 4)), key_of(parts, blocks(6, 8)));  // two constants are one there
  Subsystem without = blocks(3, 5);
  without.unknowns.pop_back();
  EXPECT_NE(key_of(parts, blocks(2, 4)), key_of(parts, without));
}

TEST(Subsystems, TheProgramOfAShapeServesAllItsParts) {
  const int n = 12, count = 3;
  const Program program = chain_of(n, -1);
  const ModeTape& mode = program.tape(std::string(n, '+'));
  Subsystems parts(program, mode, {});
  std::vector<double> x, sigma;
  for (int i = 0; i < n; ++i) {
    x.push_back(0.3 * i - 0.02 * i * i);
    x.push_back(0.1 - 0.07 * i);
    sigma.push_back(i % 2 ? 1 : -1);
  }
  Jet<double> whole(mode.flow, 0);
  whole.bind({});
  whole.load({.states = x, .sigmas = sigma, .t = 0.7}, 0);
  whole.free(0);
  whole.bound(0);

  Subsystem pattern = blocks(2, 1 + count);
  const std::vector<int> key = key_of(parts, pattern);
  parts.look(pattern);
  const SubsystemProgram made = parts.make(pattern);
  const ModeTape& own = made.program->tape(std::string(count, '+'));
  for (int first = 1; first + count < n; ++first) {
    Subsystem part = blocks(first, first + count - 1);
    ASSERT_TRUE(std::ranges::equal(parts.look(part).key(), key)) << first;
    parts.bind(part, made);
    ASSERT_EQ(part.outside.size(), 2u);
    Jet<double> jet(own.flow, 0);
    jet.bind(part.parameters);
    std::vector<double> state, letters;
    for (const std::vector<int>* list : {&part.states, &part.outside}) {
      for (const int i : *list) state.push_back(x[static_cast<size_t>(i)]);
    }
    for (const int u : part.unknowns) letters.push_back(sigma[static_cast<size_t>(u)]);
    jet.load({.states = state, .sigmas = letters, .t = 0.7}, 0);
    jet.free(0);
    jet.bound(0);
    for (size_t k = 0; k < part.states.size(); ++k)
      EXPECT_EQ(jet.output(made.program->rate(static_cast<int>(k)))[0], whole.output(program.rate(part.states[k]))[0]);
    for (int k = 0; k < count; ++k) {
      const double hold = part.parameters[part.parameters.size() - static_cast<size_t>(count - k)];
      EXPECT_EQ(hold, 1.2 + 0.1 * (first + k));
    }
  }
}

}  // namespace
}  // namespace saltus
