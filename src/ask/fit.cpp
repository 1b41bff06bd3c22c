#include "ask/fit.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/experiment.hpp"
#include "base/index.hpp"
#include "base/numbers.hpp"
#include "expr/print.hpp"
#include "model/read.hpp"
#include "solve/least_squares.hpp"

namespace saltus {
namespace {

constexpr double nothing_depends =
    1e-13;  ///< of the data: a slope that moves them by less, for a change as large as the value
constexpr double cannot_tell = 1e-9;  ///< pivots of the scaled slopes below this share leave a direction open
constexpr double huber = 1.345, median_to_sigma = 1.4826;
constexpr double level_95 = 3.841;  ///< of chi squared with one degree of freedom
constexpr int most_rounds = 30;
constexpr double same_round = 1e-9;

std::string text_of(const ModelSource& source) {
  if (source.text) return *source.text;
  std::ifstream file(source.name, std::ios::binary);
  return read_all(file, source.name);
}

/// The value with which a search begins, from the model where nobody gave one.
double value_in(const Model& model, const FreeValue& f) {
  const std::vector<double> parameters = parameter_values(model);
  const std::string name = f.name.substr(0, f.name.find('@'));
  if (name.ends_with("(0)"))
    return initial_values(model, parameters)[at(find_state(model, name.substr(0, name.size() - 3), "`free`"))];
  const int i = find_parameter(model, name, "`free`");
  if (std::find(model.unused.begin(), model.unused.end(), name) != model.unused.end())
    misuse(fmt::format("`free` {}: nothing in the model depends on '{}'", name, name), "`check` shows the equations");
  return parameters[at(i)];
}

void complete(FreeValue& f, const Model& model, const std::vector<DataTable>& data) {
  const double value = f.start ? *f.start : value_in(model, f);
  if (f.start) value_in(model, f);  // its name is checked
  if (const size_t at = f.name.find('@'); at != f.name.npos) {
    const std::string where = f.name.substr(at + 1);
    if (std::none_of(data.begin(), data.end(), [&](const DataTable& d) { return d.name == where; }))
      misuse(fmt::format("`free` {}: there is no experiment '{}'", f.name, where), "name one of [data.NAME]");
  }
  f.start = value;
  if (f.low && f.high && !(*f.low < *f.high))
    misuse(fmt::format("`free` {}: the bounds {} and {} leave nothing", f.name, print_number(*f.low),
                       print_number(*f.high)),
           "give the lower one first: F=0.1:3");
  if (f.log && (!(value > 0) || (f.low && !(*f.low > 0))))
    misuse(fmt::format("`log` {}: a logarithm needs positive values", f.name), "begin above zero, or leave it out");
}

/// The residuals of all experiments as functions of what is varied: values, or their logarithms.
class Problem {
 public:
  explicit Problem(const FitPlan& plan, const std::function<bool()>& stop) : plan_(plan), stop_(stop) {
    for (const DataTable& d : plan.question.data) experiments_.emplace_back(plan.question, d);
    for (const Experiment& e : experiments_) {
      for (const Experiment::Datum& d : e.data()) {
        (d.sigma > 0 ? known_ : unknown_) += 1;
        weight_.push_back(1);
      }
    }
    sigma_ = 1;
  }

  size_t size() const { return weight_.size(); }
  size_t unknown() const { return unknown_; }
  size_t known() const { return known_; }
  const std::vector<Experiment>& experiments() const { return experiments_; }
  const std::vector<Experiment::Point>& last() const { return last_; }
  long runs() const { return runs_; }
  double sigma() const { return sigma_; }

  std::vector<double> values_of(const std::vector<double>& u) const {
    std::vector<double> out = u;
    for (size_t k = 0; k < u.size(); ++k) {
      if (plan_.question.free[k].log) out[k] = std::exp(u[k]);
    }
    return out;
  }
  double varied(size_t k, double value) const { return plan_.question.free[k].log ? std::log(value) : value; }

  Residuals operator()(const std::vector<double>& u) {
    const std::vector<double> values = values_of(u);
    Residuals out{Vec::Zero(ix(size())), Mat::Zero(ix(size()), ix(u.size()))};
    last_.clear();
    Index row = 0;
    for (const Experiment& e : experiments_) {
      last_.push_back(e.run(values, stop_));
      ++runs_;
      const Experiment::Point& point = last_.back();
      for (size_t i = 0; i < e.size(); ++i, ++row) {
        const Experiment::Datum& d = e.data()[i];
        const double scale = weight_[ux(row)] / (d.sigma > 0 ? d.sigma : sigma_);
        if (!std::isfinite(point.model[i])) {
          out.r[row] = e.missing(d) * (d.sigma > 0 ? 1 : 1 / sigma_);
          continue;
        }
        out.r[row] = (point.model[i] - d.value) * scale;
        for (Index c = 0; c < out.J.cols(); ++c) {
          const double slope = point.slopes(ix(i), c);
          out.J(row, c) = std::isfinite(slope) ? slope * scale : 0.0;
        }
      }
    }
    return out;
  }

  /// Raw residuals of the last point, and whether their sigma is known.
  template <class Visit>
  void each_residual(const Visit& visit) const {
    size_t row = 0;
    for (size_t e = 0; e < experiments_.size(); ++e) {
      for (size_t i = 0; i < experiments_[e].size(); ++i, ++row)
        visit(row, last_[e].model[i] - experiments_[e].data()[i].value, experiments_[e].data()[i].sigma);
    }
  }

  /// The common sigma of data that have none, and weights of those far off, from the last point; true if they changed.
  bool reweigh(size_t free, bool robust, bool mixed) {
    double sum = 0;
    std::vector<double> sizes;
    each_residual([&](size_t, double r, double sigma) {
      if (sigma > 0 || !std::isfinite(r)) return;
      sum += r * r;
      sizes.push_back(std::abs(r));
    });
    const double before = sigma_;
    if (mixed && !sizes.empty()) {
      const double share = static_cast<double>(unknown_) / static_cast<double>(size());
      sigma_ = std::sqrt(sum / std::max(1.0, static_cast<double>(unknown_) - share * static_cast<double>(free)));
      if (!(sigma_ > 0)) sigma_ = before;
    }
    bool changed = std::abs(sigma_ - before) > same_round * before;
    if (!robust) return changed;
    double common = sigma_;
    if (!sizes.empty()) {
      std::nth_element(sizes.begin(), sizes.begin() + ix(sizes.size() / 2), sizes.end());
      common = median_to_sigma * sizes[sizes.size() / 2];
    }
    each_residual([&](size_t row, double r, double sigma) {
      const double far = std::abs(r) / (sigma > 0 ? sigma : common);
      const double weight = far > huber ? std::sqrt(huber / far) : 1.0;
      changed = changed || std::abs(weight - weight_[row]) > same_round;
      weight_[row] = std::isfinite(weight) ? weight : 1.0;
    });
    return changed;
  }

 private:
  const FitPlan& plan_;
  std::function<bool()> stop_;
  std::vector<Experiment> experiments_;
  std::vector<double> weight_;
  std::vector<Experiment::Point> last_;
  size_t known_ = 0, unknown_ = 0;
  double sigma_ = 1;
  long runs_ = 0;
};

/// A search from one start, with what is told of its way.
struct Search {
  LeastSquares found;
  std::vector<int> changes;  ///< of the signature, per experiment
};

class Fitting {
 public:
  Fitting(const FitPlan& plan, const Observer& observer)
      : plan_(plan), watch_(observer), problem_(plan, [this] { return watch_.stopped(); }) {}

  FitAnswer run() {
    FitAnswer answer{.system = plan_.question.system, .plan = plan_};
    check_counts();
    std::vector<double> start;
    for (size_t k = 0; k < free().size(); ++k) start.push_back(problem_.varied(k, *free()[k].start));
    check_slopes(start, problem_(start));
    Search best = search(start, bounds());
    answer.minima.push_back({problem_.values_of(best.found.x), best.found.cost});
    if (plan_.question.starts > 1) other_starts(best, answer);
    problem_(best.found.x);
    tell(best, answer);
    if (plan_.question.profile) {
      for (size_t k = 0; k < free().size() && !watch_.stopped(); ++k)
        answer.profiles.push_back(profile(k, best, answer));
      problem_(best.found.x);
    }
    answer.runs = problem_.runs();
    if (watch_.stopped()) answer.why = "cancelled";
    return answer;
  }

 private:
  const std::vector<FreeValue>& free() const { return plan_.question.free; }

  LeastSquaresOptions bounds() const {
    LeastSquaresOptions out;
    for (size_t k = 0; k < free().size(); ++k) {
      out.low.push_back(free()[k].low ? problem_.varied(k, *free()[k].low) : -HUGE_VAL);
      out.high.push_back(free()[k].high ? problem_.varied(k, *free()[k].high) : HUGE_VAL);
    }
    return out;
  }

  void check_counts() const {
    if (problem_.size() >= free().size()) return;
    throw Error(
        ErrorKind::model,
        fmt::format("{} dat{} for {} free values", problem_.size(), problem_.size() == 1 ? "um" : "a", free().size()),
        plan_.question.data.front().place, "fit fewer values, or add data");
  }

  /// A value that nothing depends on is named, before a matrix turns out singular.
  void check_slopes(const std::vector<double>& u, const Residuals& at) const {
    for (const Experiment::Point& p : problem_.last()) {
      if (!p.whole) return;
    }
    double size = 0;
    problem_.each_residual([&](size_t row, double r, double) {
      size = std::max({size, std::abs(r), std::abs(at.r[ix(row)])});
    });
    for (const Experiment& e : problem_.experiments()) {
      for (const Experiment::Datum& d : e.data())
        size = std::max(size, std::abs(d.value) / (d.sigma > 0 ? d.sigma : 1));
    }
    for (size_t k = 0; k < u.size(); ++k) {
      const double moves = at.J.col(ix(k)).max_abs() * std::max(std::abs(u[k]), 1e-6);
      if (moves <= nothing_depends * size)
        misuse(fmt::format("`free` {}: nothing in the data depends on it", free()[k].name),
               "leave it out, or add data that show its effect");
    }
  }

  Search search(const std::vector<double>& start, LeastSquaresOptions options) {
    Search out;
    out.changes.assign(problem_.experiments().size(), 0);
    std::vector<std::vector<std::string>> modes;
    options.stop = [this] { return watch_.stopped(); };
    int count = 0;
    options.each = [&](int, double) {
      std::vector<std::vector<std::string>> now;
      for (const Experiment::Point& p : problem_.last()) now.push_back(p.modes);
      for (size_t e = 0; e < now.size() && !modes.empty(); ++e) out.changes[e] += now[e] != modes[e] ? 1 : 0;
      modes = std::move(now);
      watch_.go_on({"iteration", 0, static_cast<double>(++count), static_cast<double>(options.most_iterations)});
    };
    std::vector<double> x = start;
    const bool robust = plan_.question.robust, mixed = problem_.known() > 0 && problem_.unknown() > 0;
    int iterations = 0;
    for (int round = 0; round < (robust || mixed ? most_rounds : 1); ++round) {
      out.found = minimise([&](const std::vector<double>& u) { return problem_(u); }, x, options);
      iterations += out.found.iterations;
      x = out.found.x;
      problem_(x);
      if (!problem_.reweigh(free().size(), robust, mixed)) break;
    }
    out.found.iterations = iterations;
    return out;
  }

  /// Random starts within the bounds; without them, within half of the value.
  void other_starts(Search& best, FitAnswer& answer) {
    std::mt19937_64 random(plan_.question.seed);
    for (int s = 1; s < plan_.question.starts && !watch_.stopped(); ++s) {
      std::vector<double> u;
      for (size_t k = 0; k < free().size(); ++k) {
        const double share = static_cast<double>(random() >> 11) * 0x1p-53, value = *free()[k].start;
        const double reach = 0.5 * (value != 0 ? std::abs(value) : 1.0);
        const double low = problem_.varied(k, free()[k].low.value_or(value - reach));
        const double high = problem_.varied(k, free()[k].high.value_or(value + reach));
        u.push_back(low + share * (high - low));
      }
      Search next = search(u, bounds());
      const std::vector<double> values = problem_.values_of(next.found.x);
      const auto same = [&](const FitMinimum& m) {
        for (size_t k = 0; k < values.size(); ++k) {
          if (std::abs(values[k] - m.values[k]) > 1e-5 * std::max(std::abs(values[k]), std::abs(m.values[k])))
            return false;
        }
        return true;
      };
      if (std::none_of(answer.minima.begin(), answer.minima.end(), same))
        answer.minima.push_back({values, next.found.cost});
      if (next.found.cost < best.found.cost) best = std::move(next);
    }
    std::stable_sort(answer.minima.begin(), answer.minima.end(),
                     [](const FitMinimum& a, const FitMinimum& b) { return a.cost < b.cost; });
  }

  /// The variance of residuals with a sigma of 1: their common one by the sum of squares, or 1.
  double variance(double cost) const {
    if (problem_.known() > 0) return 1;
    const double degrees = static_cast<double>(problem_.size()) - static_cast<double>(free().size());
    return degrees > 0 ? cost / degrees : 0;
  }

  void tell(const Search& search, FitAnswer& answer) {
    const LeastSquares& found = search.found;
    answer.cost = found.cost;
    answer.iterations = found.iterations;
    answer.why = found.end == LeastSquaresEnd::converged    ? "converged"
                 : found.end == LeastSquaresEnd::iterations ? "iterations"
                                                            : "cancelled";
    const std::vector<double> values = problem_.values_of(found.x);
    const LeastSquaresOptions box = bounds();
    for (size_t k = 0; k < values.size(); ++k) {
      FittedValue v{.name = free()[k].name, .value = values[k], .low = free()[k].low, .high = free()[k].high};
      v.at_bound = found.x[k] <= box.low[k] || found.x[k] >= box.high[k];
      if (v.at_bound) {
        v.value = found.x[k] <= box.low[k] ? *v.low : *v.high;
        answer.notes.push_back(fmt::format("'{}' is at its bound {}", v.name, print_number(v.value)));
      }
      answer.values.push_back(std::move(v));
    }
    answer.sigma = problem_.known() > 0 ? problem_.sigma() : std::sqrt(variance(found.cost));
    tell_errors(found, answer);
    tell_series(answer);
    for (size_t e = 0; e < search.changes.size(); ++e) {
      const Experiment& experiment = problem_.experiments()[e];
      if (search.changes[e] > 0)
        answer.notes.push_back(fmt::format(
            "the order of events in '{}' has changed {} time{} on the way: the sum of squares has kinks there",
            experiment.table().name, search.changes[e], search.changes[e] == 1 ? "" : "s"));
      if (!problem_.last()[e].whole)
        answer.notes.push_back(fmt::format("the run of '{}' does not reach all of its data", experiment.table().name));
    }
    std::vector<Setting> parameters, initial;
    for (const FittedValue& v : answer.values) {
      if (v.name.find('@') != v.name.npos) continue;
      if (v.name.ends_with("(0)"))
        initial.emplace_back(v.name.substr(0, v.name.size() - 3), Formula(v.value));
      else
        parameters.emplace_back(v.name, Formula(v.value));
    }
    answer.system = plan_.question.system.with(parameters, initial);
  }

  /// From the slopes at the end: cov = s^2 (J^T J)^-1 over what is not at a bound.
  void tell_errors(const LeastSquares& found, FitAnswer& answer) const {
    const Index n = ix(free().size());
    std::vector<Index> moves;
    for (Index k = 0; k < n; ++k) {
      if (!answer.values[ux(k)].at_bound) moves.push_back(k);
    }
    const Index count = ix(moves.size());
    Mat A(found.at.r.size(), count);
    Vec size(count);
    for (Index c = 0; c < count; ++c) {
      size[c] = found.at.J.col(moves[ux(c)]).norm();
      A.col(c) = found.at.J.col(moves[ux(c)]) / (size[c] > 0 ? size[c] : 1.0);
    }
    std::set<Index> open;
    const Mat free_directions = count > 0 ? null_space(A, cannot_tell) : Mat();
    for (Index d = 0; d < free_directions.cols(); ++d) {
      constexpr double takes_part = 0.1;
      std::vector<std::string> names;
      for (Index c = 0; c < count; ++c) {
        if (std::abs(free_directions(c, d)) < takes_part) continue;
        open.insert(c);
        names.push_back(free()[ux(moves[ux(c)])].name);
      }
      answer.notes.push_back(fmt::format("the data do not tell {} apart: a combination of them may have any value",
                                         fmt::join(names, " and ")));
    }
    const Mat inverse = count > 0 ? Orthogonal(A, cannot_tell).pseudo_inverse() : Mat();
    const Mat covariance = count > 0 ? Mat(inverse * inverse.transpose()) : Mat();
    answer.correlation.assign(ux(n), std::vector<double>(ux(n), nan));
    for (FittedValue& v : answer.values) v.error = nan;
    const double s = std::sqrt(variance(found.cost));
    for (Index c = 0; c < count; ++c) {
      const size_t k = ux(moves[ux(c)]);
      const double scale = free()[k].log ? answer.values[k].value : 1.0;
      answer.values[k].error =
          open.count(c) || size[c] == 0 ? HUGE_VAL : s * std::sqrt(covariance(c, c)) / size[c] * scale;
      for (Index b = 0; b < count; ++b)
        answer.correlation[k][ux(moves[ux(b)])] = covariance(c, b) / std::sqrt(covariance(c, c) * covariance(b, b));
    }
  }

  void tell_series(FitAnswer& answer) const {
    for (size_t e = 0; e < problem_.experiments().size(); ++e) {
      const Experiment& experiment = problem_.experiments()[e];
      const size_t first = answer.series.size(), count = std::max<size_t>(1, experiment.table().series.size());
      for (size_t s = 0; s < count; ++s)
        answer.series.push_back({experiment.table().name, experiment.series_name(s), experiment.of_events(), {}, 0});
      for (size_t i = 0; i < experiment.size(); ++i) {
        const Experiment::Datum& d = experiment.data()[i];
        answer.series[first + d.series].data.push_back({d.t, d.value, problem_.last()[e].model[i], d.sigma});
      }
      for (size_t s = first; s < answer.series.size(); ++s) {
        double sum = 0;
        for (const FittedDatum& d : answer.series[s].data) sum += (d.model - d.datum) * (d.model - d.datum);
        const double n = static_cast<double>(answer.series[s].data.size());
        answer.series[s].rms = n > 0 ? std::sqrt(sum / n) : 0;
      }
    }
  }

  /// The least sum of squares with one value held, over three errors each way.
  FitProfile profile(size_t k, const Search& best, const FitAnswer& answer) {
    constexpr int half = 6;
    constexpr double reach = 3;
    FitProfile out;
    const double error = answer.values[k].error, middle = best.found.x[k];
    if (!std::isfinite(error) || error == 0) return out;
    const double step = reach / half * (free()[k].log ? error / answer.values[k].value : error);
    const LeastSquaresOptions box = bounds();
    const double level = answer.cost + level_95 * variance(answer.cost);
    std::vector<std::pair<double, double>> points{{middle, answer.cost}};
    for (const int way : {-1, 1}) {
      std::vector<double> x = best.found.x;
      double before = middle, cost_before = answer.cost;
      for (int i = 1; i <= half && !watch_.stopped(); ++i) {
        const double held = middle + way * i * step;
        if (held < box.low[k] || held > box.high[k]) break;
        LeastSquaresOptions here = box;
        here.low[k] = here.high[k] = held;
        x[k] = held;
        const LeastSquares found = minimise([&](const std::vector<double>& u) { return problem_(u); }, x, here);
        x = found.x;
        points.emplace_back(held, found.cost);
        std::optional<double>& end = way < 0 ? out.low : out.high;
        if (!end && found.cost >= level) {
          // The root of the rise is nearly straight.
          const double a = std::sqrt(std::max(0.0, cost_before - answer.cost)), b = std::sqrt(found.cost - answer.cost);
          const double at = before + (held - before) * (std::sqrt(level - answer.cost) - a) / (b - a);
          end = free()[k].log ? std::exp(at) : at;
        }
        before = held, cost_before = found.cost;
      }
    }
    std::sort(points.begin(), points.end());
    for (const auto& [u, cost] : points) {
      out.value.push_back(free()[k].log ? std::exp(u) : u);
      out.cost.push_back(cost);
    }
    return out;
  }

  const FitPlan& plan_;
  Observing watch_;
  Problem problem_;
};

}  // namespace

FitPlan plan(const FitQuestion& question) {
  FitPlan out{.question = question};
  FitQuestion& q = out.question;
  const Model& model = q.system.model();
  if (q.free.empty()) misuse("nothing is free", "name what is fitted: F, omega=0.1:3, \"y(0)\"");
  if (q.data.empty()) {
    const ModelSource& source = q.system.source();
    q.data = read_data(text_of(source), source.name);
  }
  if (q.data.empty())
    misuse("the model has no data", "add a table [data.test1] with file = \"test1.csv\" and of = { y = \"position\" }");
  for (FreeValue& f : q.free) complete(f, model, q.data);
  for (size_t i = 0; i < q.free.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (q.free[i].name == q.free[k].name)
        misuse(fmt::format("`free` {} is given twice", q.free[i].name), "give it once");
    }
  }
  if (q.starts < 1) misuse(fmt::format("`starts` {}: no such number", q.starts), "give 1 or more");
  out.options = run_options(q.solve, model, q.data.front().times.back());
  for (const DataTable& d : q.data) Experiment(q, d);  // its mistakes
  return out;
}

FitAnswer ask(const FitPlan& plan, const Observer& observer) { return Fitting(plan, observer).run(); }

}  // namespace saltus
