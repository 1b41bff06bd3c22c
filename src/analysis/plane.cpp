#include "analysis/plane.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "base/index.hpp"
#include "flow/series.hpp"

namespace saltus {
namespace {

struct Point {
  double x = 0, y = 0;
};

Point between(Point a, Point b, double share) { return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)}; }

/// The model at points of the plane: signs of everything, in the mode that follows from them.
class Look {
 public:
  Look(const Program& program, std::span<const double> parameters, const PlaneView& view)
      : program_(program), view_(view), series_(program, parameters, 1), x_(view.state) {
    mode_.switches.assign(at(program.switches()), '+');
    mode_.constraints = program.open_constraints();
    counters_.assign(program.model().form.counters.size(), 0.0);
  }

  /// Values there; the mode is found by going on until signs and letters agree.
  void look(Point p) {
    x_[at(view_.across)] = p.x;
    x_[at(view_.up)] = p.y;
    for (int round = 0; round < program_.switches() + 3; ++round) {
      series_.set_mode(mode_);
      series_.evaluate(x_, view_.t, counters_);
      if (!follow_signs()) return;
    }
  }

  double surface(int i) const { return series_.surface(i)[0]; }
  double gap(int j) const { return series_.gap(j)[0]; }
  double section(int s) const { return series_.section(s)[0]; }
  double hold(int i) const { return series_.hold(i); }

  /// h' at a point, in the mode there.
  double surface_rate(int i, Point p) {
    look(p);
    return series_.expand(x_, view_.t, counters_, 1) == SeriesStatus::ok ? series_.surface(i)[1] : NAN;
  }

 private:
  bool follow_signs() {
    bool changed = false;
    for (size_t c = 0; c < counters_.size(); ++c) {
      const double count = std::floor(series_.phase(static_cast<int>(c))[0]);
      if (!std::isfinite(count) || count == counters_[c]) continue;
      counters_[c] = count;
      changed = true;
    }
    for (int i = 0; i < program_.switches(); ++i) {
      const char letter = surface(i) < 0 ? '-' : '+';
      changed = changed || letter != mode_.switches[at(i)];
      mode_.switches[at(i)] = letter;
    }
    return changed;
  }

  const Program& program_;
  const PlaneView& view_;
  Series series_;
  Mode mode_;
  std::vector<double> counters_, x_;
};

class Painter {
 public:
  Painter(const Program& program, std::span<const double> parameters, const PlaneView& view)
      : program_(program), view_(view), look_(program, parameters, view) {}

  PlanePicture paint() {
    const Model& model = program_.model();
    for (int i = 0; i < model.form.visible; ++i) {
      if (program_.moves(i) && !program_.timed(i))
        functions_.push_back({model.form.switches[at(i)].name, i, [this, i] { return look_.surface(i); }});
    }
    for (int j = 0; j < program_.constraints(); ++j)
      functions_.push_back({model.constraints[at(j)].name, -1, [this, j] { return look_.gap(j); }, PlaneKind::gap});
    for (size_t s = 0; s < model.sections.size(); ++s) {
      const int section = static_cast<int>(s);
      if (model.sections[s].kind == Section::Kind::on)
        functions_.push_back(
            {model.sections[s].name, -1, [this, section] { return look_.section(section); }, PlaneKind::section});
    }
    fill_grid();
    for (size_t f = 0; f < functions_.size(); ++f) trace(f);
    for (auto& [key, ends] : lines_)
      picture_.lines.push_back({functions_[key.first].name, key.second, std::move(ends)});
    return std::move(picture_);
  }

 private:
  struct Function {
    std::string name;
    int of_switch = -1;
    std::function<double()> value;  ///< where the look is
    PlaneKind kind = PlaneKind::crossing;
  };

  Point corner(int i, int j) const {
    const double n = view_.cells;
    return {view_.x_from + (view_.x_to - view_.x_from) * i / n, view_.y_from + (view_.y_to - view_.y_from) * j / n};
  }
  size_t place(int i, int j) const { return at(j) * at(view_.cells + 1) + at(i); }

  void fill_grid() {
    const size_t corners = at(view_.cells + 1) * at(view_.cells + 1);
    grid_.assign(functions_.size(), std::vector<double>(corners));
    if (program_.constraints() > 0) picture_.forbidden.assign(corners, 0);
    for (int j = 0; j <= view_.cells; ++j) {
      for (int i = 0; i <= view_.cells; ++i) {
        look_.look(corner(i, j));
        for (size_t f = 0; f < functions_.size(); ++f) {
          const double value = grid_[f][place(i, j)] = functions_[f].value();
          if (functions_[f].kind == PlaneKind::gap && value < 0) picture_.forbidden[place(i, j)] = 1;
        }
      }
    }
  }

  double value(size_t f, Point p) {
    look_.look(p);
    return functions_[f].value();
  }

  /// The zero between two points with different signs.
  Point root(size_t f, Point a, Point b, double at_a) {
    for (int k = 0; k < 30; ++k) {
      const Point middle = between(a, b, 0.5);
      (value(f, middle) < 0) == (at_a < 0) ? a = middle : b = middle;
    }
    return between(a, b, 0.5);
  }

  void trace(size_t f) {
    const std::vector<double>& h = grid_[f];
    for (int j = 0; j < view_.cells; ++j) {
      for (int i = 0; i < view_.cells; ++i) {
        const std::array<std::array<int, 2>, 4> around{{{i, j}, {i + 1, j}, {i + 1, j + 1}, {i, j + 1}}};
        std::vector<Point> ends;
        for (size_t k = 0; k < 4; ++k) {
          const auto [ai, aj] = around[k];
          const auto [bi, bj] = around[(k + 1) % 4];
          const double a = h[place(ai, aj)], b = h[place(bi, bj)];
          if (!std::isfinite(a) || !std::isfinite(b) || (a < 0) == (b < 0)) continue;
          ends.push_back(root(f, corner(ai, aj), corner(bi, bj), a));
        }
        for (size_t k = 0; k + 1 < ends.size(); k += 2) divide(f, ends[k], ends[k + 1]);
      }
    }
  }

  /// Adds the line, in two parts where the flow differs at its ends.
  void divide(size_t f, Point a, Point b) {
    const PlaneKind at_a = kind(f, a, a, b), at_b = kind(f, b, a, b);
    if (at_a == at_b) return add(f, at_a, a, b);
    double low = 0, high = 1;
    for (int k = 0; k < 12; ++k) {
      const double middle = 0.5 * (low + high);
      (kind(f, between(a, b, middle), a, b) == at_a ? low : high) = middle;
    }
    const Point cut = between(a, b, 0.5 * (low + high));
    add(f, at_a, a, cut);
    add(f, at_b, cut, b);
  }

  void add(size_t f, PlaneKind kind, Point a, Point b) {
    std::vector<double>& ends = lines_[{f, kind}];
    ends.insert(ends.end(), {a.x, a.y, b.x, b.y});
  }

  /// The kind of flow at a point of the line from a to b, by the rates of h a little to both sides of it.
  PlaneKind kind(size_t f, Point p, Point a, Point b) {
    const int i = functions_[f].of_switch;
    if (i < 0) return functions_[f].kind;
    if (program_.model().form.switches[at(i)].kink) return PlaneKind::kink;
    const double width = view_.x_to - view_.x_from, height = view_.y_to - view_.y_from;
    const double along_x = (b.x - a.x) / width, along_y = (b.y - a.y) / height;
    const double length = std::hypot(along_x, along_y);
    if (!(length > 0)) return PlaneKind::crossing;
    const double aside = 1e-7 / length;
    Point above{p.x - aside * along_y * width, p.y + aside * along_x * height};
    Point below{p.x + aside * along_y * width, p.y - aside * along_x * height};
    if (value(f, above) < 0) std::swap(above, below);
    const double rate_above = look_.surface_rate(i, above), rate_below = look_.surface_rate(i, below);
    const double push = rate_below - rate_above, sum = rate_above + rate_below;
    const double noise = 1e-9 * std::max(std::abs(rate_above), std::abs(rate_below));
    if (push > noise && std::abs(sum) <= look_.hold(i) * push) return PlaneKind::attracting;
    if (push < -noise && std::abs(sum) <= -push) return PlaneKind::repelling;
    return PlaneKind::crossing;
  }

  const Program& program_;
  const PlaneView& view_;
  Look look_;
  std::vector<Function> functions_;
  std::vector<std::vector<double>> grid_;  // per function, at corners
  std::map<std::pair<size_t, PlaneKind>, std::vector<double>> lines_;
  PlanePicture picture_;
};

}  // namespace

std::string_view plane_kind_name(PlaneKind kind) {
  constexpr std::array<std::string_view, 6> names{"attracting", "repelling", "crossing", "kink", "gap", "section"};
  return names[static_cast<size_t>(kind)];
}

PlanePicture picture_plane(const Program& program, std::span<const double> parameters, const PlaneView& view) {
  return Painter(program, parameters, view).paint();
}

}  // namespace saltus
