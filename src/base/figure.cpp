#include "base/figure.hpp"

namespace saltus {
namespace {

struct Checker {
  std::span<const Table> tables;

  void xy(const auto& layer) const {
    const Table& table = find_table(tables, layer.table);
    table.numbers(layer.x);
    table.numbers(layer.y);
  }
  void operator()(const Line& line) const { xy(line); }
  void operator()(const Curve& curve) const {
    xy(curve);
    find_table(tables, curve.table).numbers(curve.z);
  }
  void operator()(const Points& points) const {
    xy(points);
    if (!points.kind.empty()) find_table(tables, points.table).texts(points.kind);
  }
  void operator()(const Dots& dots) const {
    xy(dots);
    if (!dots.colour.empty()) find_table(tables, dots.table).column(dots.colour);
  }
  void operator()(const Heat& heat) const {
    xy(heat);
    find_table(tables, heat.table).numbers(heat.value);
  }
  void operator()(const Ribbon& ribbon) const {
    const Table& table = find_table(tables, ribbon.table);
    table.numbers(ribbon.from);
    table.numbers(ribbon.to);
    table.texts(ribbon.category);
  }
  void operator()(const Circle&) const {}
  void operator()(const Verticals&) const {}
};

}  // namespace

void check(const Figure& figure, std::span<const Table> tables) {
  for (const Stack& stack : figure.stacks) {
    for (const Panel& panel : stack.panels) {
      for (const Layer& layer : panel.layers) std::visit(Checker{tables}, layer);
    }
  }
}

}  // namespace saltus
