// Series side by side against sums written out one by one.
#include "code/columns.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "code/columns_rules.hpp"

namespace saltus {
namespace {

constexpr size_t terms = 19;

struct Flow {
  size_t count;
  std::vector<std::vector<double>> weights;  // dense
  std::vector<double> constant, time, x;
  Band band;
};

Flow random_flow(unsigned seed, size_t count) {
  std::mt19937 draw(seed);
  const auto number = [&] { return static_cast<double>(draw()) / 0x1p31 - 1; };
  Flow flow{.count = count, .weights{}, .constant{}, .time{}, .x{}, .band{}};
  flow.band.begin(count);
  flow.weights.assign(count, std::vector<double>(count, 0.0));
  for (size_t k = 0; k < count; ++k) {
    flow.x.push_back(number());
    flow.constant.push_back(flow.band.constant[k] = number());
    flow.time.push_back(flow.band.time[k] = number());
    for (int offset = -Band::reach; offset <= Band::reach; ++offset) {
      const int j = static_cast<int>(k) + offset;
      if (j < 0 || j >= static_cast<int>(count) || draw() % 2 == 0) continue;
      const double weight = number();
      flow.weights[k][static_cast<size_t>(j)] += weight;
      flow.band.add(k, offset, weight);
    }
  }
  return flow;
}

/// x_{k+1} = (W x_k + ...)/(k + 1), state by state; with one term more than columns have.
std::vector<std::vector<double>> series_of(const Flow& flow) {
  std::vector<std::vector<double>> out{flow.x};
  for (size_t order = 0; order < terms; ++order) {
    std::vector<double>& next = out.emplace_back();
    for (size_t k = 0; k < flow.count; ++k) {
      double sum = order == 0 ? flow.constant[k] : order == 1 ? flow.time[k] : 0;
      for (size_t j = 0; j < flow.count; ++j) sum += flow.weights[k][j] * out[order][j];
      next.push_back(sum / static_cast<double>(order + 1));
    }
  }
  return out;
}

TEST(Columns, AreTheSeriesOfALinearFlow) {
  ColumnStore store;
  store.begin(terms);
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const Flow flow = random_flow(seed, 1 + seed % 23);
    const std::vector<std::vector<double>> wanted = series_of(flow);
    Columns columns = store.take(flow.count);
    std::copy(flow.x.begin(), flow.x.end(), columns.first);
    std::vector<double> next;
    expand(flow.band, columns, next);
    for (size_t k = 0; k < flow.count; ++k) {
      for (size_t order = 0; order < terms; ++order)
        ASSERT_NEAR(columns[k][order], wanted[order][k], 1e-13) << seed << " " << k << " " << order;
      ASSERT_NEAR(next[k] / static_cast<double>(terms), wanted[terms][k], 1e-13) << seed << " " << k;
    }
    std::vector<double> at(Columns::padded(flow.count));
    evaluate(columns, 0.7, at.data());
    for (size_t k = 0; k < flow.count; ++k) {
      double value = 0;
      for (size_t order = 0; order < terms; ++order) {
        value += wanted[order][k] * std::pow(0.7, static_cast<double>(order));
      }
      ASSERT_NEAR(at[k], value, 1e-13);
      ASSERT_EQ(at[k], evaluate(columns[k], terms, 0.7));
    }
    if (seed % 3 != 0) store.give_back(columns);  // others find what it leaves behind
  }
}

// Told to be clear of zero, no series vanishes; and what is clear by far is told to be.
TEST(Columns, AreClearWhereTheyDoNotVanish) {
  ColumnStore store;
  store.begin(terms);
  size_t clear = 0, vanishing = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Flow flow = random_flow(seed, 1 + seed % 19);
    Columns columns = store.take(flow.count);
    std::copy(flow.x.begin(), flow.x.end(), columns.first);
    std::vector<double> next, clearance(Columns::padded(flow.count));
    expand(flow.band, columns, next);
    const double h = 0.05 * (1 + seed % 7);
    find_clearance(columns, h, clearance.data());
    for (size_t k = 0; k < flow.count; ++k) {
      double least = HUGE_VAL, steepest = 0;
      const double start = columns[k][0];
      bool vanishes = false;
      for (int j = 0; j <= 1000; ++j) {
        const double tau = h * j / 1000, x = evaluate(columns[k], terms, tau);
        vanishes = vanishes || x * start <= 0;
        least = std::min(least, std::abs(x));
        if (j > 0)
          steepest = std::max(steepest, std::abs(x - evaluate(columns[k], terms, h * (j - 1) / 1000)) * 1000 / h);
      }
      ASSERT_LE(clearance[k], least) << seed << " " << k;
      ASSERT_GE(bound_rate(columns[k], terms, h) * (1 + 1e-9), steepest);
      ASSERT_TRUE(!vanishes || clearance[k] <= 0) << seed << " " << k;
      vanishing += vanishes;
      clear += clearance[k] > 0;
    }
    store.give_back(columns);
  }
  EXPECT_GT(clear, 200u);
  EXPECT_GT(vanishing, 20u);
}

TEST(Columns, AreJudgedByTheirLastTerms) {
  ColumnStore store;
  store.begin(terms);
  const Flow flow = random_flow(3, 13);
  Columns columns = store.take(flow.count);
  std::copy(flow.x.begin(), flow.x.end(), columns.first);
  std::vector<double> next, least(Columns::padded(flow.count), 0.01), scale(least.size());
  expand(flow.band, columns, next);
  constexpr double reach = 1.7;
  const LastTerms found = judge_last(columns, reach, least.data(), scale.data());
  LastTerms wanted;
  for (size_t k = 0; k < flow.count; ++k) {
    const ColumnSeries c = columns[k];
    const double own = std::max({0.01, std::abs(c[0]), std::abs(c[1]) * reach, std::abs(c[2]) * (reach * reach)});
    EXPECT_DOUBLE_EQ(scale[k], own);
    wanted.last = std::max(wanted.last, std::abs(c[terms - 1]) / own);
    wanted.previous = std::max(wanted.previous, std::abs(c[terms - 2]) / own);
  }
  EXPECT_DOUBLE_EQ(found.last, wanted.last);
  EXPECT_DOUBLE_EQ(found.previous, wanted.previous);
}

// What a column that has been given back held, and what stands beside the columns, counts for nothing.
TEST(Columns, TakeNothingFromThoseBefore) {
  ColumnStore store;
  store.begin(terms);
  const Flow flow = random_flow(5, 5);
  std::vector<double> next;
  Columns clean = store.take(5);
  std::copy(flow.x.begin(), flow.x.end(), clean.first);
  expand(flow.band, clean, next);
  Columns used = store.take(8);
  for (size_t order = 0; order < terms; ++order) std::fill_n(used.row(order), 8, NAN);
  store.give_back(used);
  Columns again = store.take(5);
  std::copy(flow.x.begin(), flow.x.end(), again.first);
  expand(flow.band, again, next);
  for (size_t k = 0; k < 5; ++k) {
    for (size_t order = 0; order < terms; ++order) ASSERT_EQ(clean[k][order], again[k][order]);
  }
}

TEST(Columns, HaveTheSameBitsInRegistersOfTwo) {
  ColumnStore store;
  store.begin(terms);
  const Flow flow = random_flow(9, 11);
  std::vector<double> next, next_by_two(Columns::padded(flow.count));
  Columns a = store.take(flow.count), b = store.take(flow.count);
  std::copy(flow.x.begin(), flow.x.end(), a.first);
  std::copy(flow.x.begin(), flow.x.end(), b.first);
  expand(flow.band, a, next);
  columns::Diagonals plain{
      flow.band.constant.data(), flow.band.time.data(), {}, {}, static_cast<size_t>(flow.band.diagonals)};
  for (size_t d = 0; d < plain.count; ++d) {
    plain.offsets[d] = flow.band.offsets[d];
    plain.weights[d] = flow.band.weights(plain.offsets[d]);
  }
  columns::expand<columns::Two>(plain, b, next_by_two.data());
  for (size_t k = 0; k < flow.count; ++k) {
    for (size_t order = 0; order < terms; ++order) ASSERT_EQ(a[k][order], b[k][order]);
    ASSERT_EQ(next[k], next_by_two[k]);
  }
}

}  // namespace
}  // namespace saltus
