#include "analysis/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "analysis/lookout.hpp"
#include "analysis/random.hpp"
#include "analysis/settle.hpp"
#include "analysis/stretching.hpp"
#include "base/error.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/period.hpp"

namespace saltus {
namespace {

[[noreturn]] void misuse(std::string message, std::string hint) {
  throw Error(ErrorKind::usage, std::move(message), {}, std::move(hint));
}

// ---- a formula as what is varied -----------------------------------------------------------------------------------

/// The formula as a function of its parameter; others that depend on it follow.
struct Quantity {
  const Model& model;
  const Expr& formula;
  std::size_t index;

  double operator()(double p) const {
    const GivenParameter given{static_cast<int>(index), p};
    return constant_value(formula, parameter_values(model, std::span(&given, 1)));
  }
};

/// The number between two of one sign, halfway in their decimal logarithm.
double between(double a, double b) {
  return a * b > 0 ? std::copysign(std::sqrt(std::abs(a)) * std::sqrt(std::abs(b)), a) : (a + b) / 2;
}

/// A root of q(p) = value between a and b, to the last bit.
double solve_between(const Quantity& q, double a, double b, double value) {
  const bool rising = q(b) > q(a);
  for (int i = 0; i < 2000; ++i) {
    const double m = std::abs(b) > 2 * std::abs(a) || std::abs(a) > 2 * std::abs(b) ? between(a, b) : a + (b - a) / 2;
    if (m == a || m == b) break;
    ((q(m) < value) == rising ? a : b) = m;
  }
  return std::abs(q(a) - value) <= std::abs(q(b) - value) ? a : b;
}

// ---- one run -------------------------------------------------------------------------------------------------------

/// The last points of a section a run has passed, as many as are to be recorded.
class LastPoints {
 public:
  LastPoints(std::size_t most, std::size_t width) : most_(most), width_(width) {}

  void add(const Passing& p) {
    if (t_.size() == 2 * most_) keep_last(most_);
    values_.insert(values_.end(), p.state.begin(), p.state.end());
    t_.push_back(p.t);
    events_.push_back(p.events);
    slides_.push_back(p.slides);
  }
  void keep_last(std::size_t count) {
    if (count >= t_.size()) return;
    const auto cut = [](auto& list, std::size_t n) {
      list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(n));
    };
    cut(values_, count * width_);
    cut(t_, count);
    cut(events_, count);
    cut(slides_, count);
  }
  std::size_t size() const { return t_.size(); }
  std::size_t width() const { return width_; }
  const Numbers& values() const { return values_; }
  const Numbers& t() const { return t_; }
  long events(std::size_t i) const { return events_[i]; }
  long slides(std::size_t i) const { return slides_[i]; }

 private:
  std::size_t most_, width_;
  Numbers values_, t_;
  std::vector<long> events_, slides_;
};

/// The stretching of one tangent up to each of the last points: its differences over time are the largest exponent.
class PointLogs {
 public:
  PointLogs(const Program& program, const RunOptions& run, std::size_t most)
      : stretching_(program, run, 1), most_(most) {}

  /// A point of the section: on the piece that comes next, or at what has just happened.
  void point(double t, bool on_piece) {
    if (on_piece) {
      waiting_.push_back(t);
    } else {
      keep(stretching_.logs().front());
    }
  }
  void piece(const Piece& piece, const Arc& arc) {
    for (const double t : waiting_) {
      const double tau = t - piece.start;
      keep(stretching_.first_within(piece, arc, std::abs(tau) < std::abs(piece.length) ? tau : piece.length));
    }
    waiting_.clear();
    stretching_.along(piece, arc);
  }
  void transition(const Transition& event) { stretching_.through(event); }

  /// Over whole periods of the last points, as many as there are.
  double exponent(const Numbers& times, long period) const {
    const std::size_t count = std::min(logs_.size(), times.size());
    if (count < 2 || !waiting_.empty()) return std::numeric_limits<double>::quiet_NaN();
    const std::size_t unit = std::min(static_cast<std::size_t>(std::max(1L, period)), count - 1);
    const std::size_t back = (count - 1) / unit * unit;
    const double last = logs_.back();
    if (std::isinf(last)) return last;
    return (last - logs_[logs_.size() - 1 - back]) / std::abs(times.back() - times[times.size() - 1 - back]);
  }

 private:
  void keep(double log) {
    if (logs_.size() == 2 * most_) logs_.erase(logs_.begin(), logs_.end() - static_cast<std::ptrdiff_t>(most_));
    logs_.push_back(log);
  }

  Stretching stretching_;
  std::size_t most_;
  Numbers logs_ = {}, waiting_ = {};
};

/// Everything about a sweep that its runs share.
class Sweeper {
 public:
  Sweeper(const Program& program, const SweepPlan& plan)
      : program_(program),
        model_(program.model()),
        plan_(plan),
        strobe_(model_.sections[static_cast<std::size_t>(plan.section)].kind == Section::Kind::every),
        phased_(!strobe_ && !model_.autonomous()) {}

  SweepRun compute(Simulator& simulator, std::size_t run, const SweepRun* before, const std::stop_token& stop) const {
    RunOptions options = plan_.run;
    SweepRun result;
    result.measures.assign(plan_.measures.size(), std::numeric_limits<double>::quiet_NaN());
    try {
      set_values(options, run);
      check_clocks(model_, options.parameters);
      const bool driven = phased_ && time_counts(model_, options.parameters);
      const auto period = driven ? period_in_time(model_, options.parameters) : std::nullopt;
      set_start(options, run, before, period);
      set_end(options);
      follow(simulator, options, period ? period->value : 0, stop, result);
    } catch (const Error& error) {  // a start these values do not allow: the fate of this run, not of the sweep
      result.why = Why::undefined;
      result.message = error.message();
    }
    return result;
  }

 private:
  void set_values(RunOptions& options, std::size_t run) const {
    std::size_t cell = run / plan_.starts_per_value();
    // Parameters of the plan that differ from the model are given too; the varied ones take precedence.
    std::vector<GivenParameter> given;
    const Numbers own = parameter_values(model_);
    for (std::size_t i = 0; i < own.size() && i < options.parameters.size(); ++i) {
      const bool varied = std::any_of(plan_.varied.begin(), plan_.varied.end(),
                                      [i](const auto& v) { return v.parameter == static_cast<int>(i); });
      if (!varied && options.parameters[i] != own[i]) given.push_back({static_cast<int>(i), options.parameters[i]});
    }
    for (const Varied& v : plan_.varied) {
      given.push_back({v.parameter, v.setting[cell % v.setting.size()]});
      cell /= v.setting.size();
    }
    options.parameters = parameter_values(model_, given);
  }

  void set_start(RunOptions& options, std::size_t run, const SweepRun* before,
                 const std::optional<Period>& period) const {
    const std::size_t width = model_.states.size();
    if (before && before->why == Why::count && before->last.size() == width + 2) {
      options.initial.assign(before->last.begin(), before->last.begin() + static_cast<std::ptrdiff_t>(width));
      const double t = before->last[width], former = before->last[width + 1];
      if (period && former > 0)  // at the same phase of what drives it
        options.from += period->value * std::fmod((t - options.from) / former, 1.0);
      else if (phased_)
        options.from = t;
      return;
    }
    const std::size_t directions = plan_.direction == Continue::both ? 2 : 1;
    const std::size_t start = run % plan_.starts_per_value() / directions;
    options.initial = plan_.starts.empty() ? plan_.run.initial : plan_.starts[start];
    if (plan_.starts.empty()) {
      const Numbers model = initial_values(model_, options.parameters);
      const std::uint64_t draw = run / directions;  // both directions begin at the same place
      for (std::size_t s = 0; s < width; ++s) {
        const bool drawn = s < plan_.box.size() && !std::isnan(plan_.box[s].first);
        options.initial[s] = !drawn ? model[s]
                                    : plan_.box[s].first + (plan_.box[s].second - plan_.box[s].first) *
                                                               random_number(plan_.seed, draw, s);
      }
    }
  }

  void set_end(RunOptions& options) const {
    options.section = plan_.section;
    options.section_count = std::max(plan_.settle, plan_.skip + plan_.count);
    options.keep_events = false;
    if (std::isfinite(options.until)) return;
    options.to_the_end = false;
    const Section& section = model_.sections[static_cast<std::size_t>(plan_.section)];
    options.until = options.from + (strobe_ ? constant_value(section.value, options.parameters) *
                                                  (static_cast<double>(options.section_count) + 0.5)
                                            : 1e12);
  }

  /// The run itself, and what its points tell.
  void follow(Simulator& simulator, RunOptions& options, double driving_period, const std::stop_token& stop,
              SweepRun& result) const {
    const bool own_end = !std::isfinite(plan_.run.until);
    const auto at_most = static_cast<std::size_t>(plan_.count);
    LastPoints points(at_most, model_.states.size());
    Recurrence found;
    bool settled = false;
    long next_look = plan_.skip + plan_.count;
    Lookout lookout(model_, options, plan_.section);
    const auto& section = model_.sections[static_cast<std::size_t>(plan_.section)];
    const bool on_piece = section.kind == Section::Kind::every || section.kind == Section::Kind::on;
    std::optional<PointLogs> logs;
    std::optional<SectionMeter> meter;  // from the first recorded point on
    const auto carry_tangents = [&] {   // for half of the transient, and from then on
      if (plan_.exponent && !logs && result.seen >= plan_.skip / 2) logs.emplace(program_, options, at_most);
    };
    carry_tangents();
    options.on_section = [&](const Passing& p) {
      if (p.section != plan_.section) return true;
      lookout.met();
      points.add(p);
      if (logs) logs->point(p.t, on_piece);
      if (!meter && !plan_.measures.empty() && result.seen >= plan_.skip)
        meter.emplace(program_, options, plan_.measures, at_most, on_piece);
      if (meter) meter->point(p.t);
      ++result.seen;
      carry_tangents();
      if (plan_.settle == 0 || result.seen < next_look) return true;
      next_look = result.seen + plan_.count / 2 + 1;
      points.keep_last(at_most);
      found = look(points, driving_period);
      settled = found.period > 0 && found.arrived;
      return !settled;
    };
    options.progress = [&](double) { return lookout.verdict().empty(); };
    options.stop = [&] { return stop.stop_requested(); };
    if (plan_.exponent || lookout.watches() || !plan_.measures.empty()) {
      options.on_piece = [&](const Piece& piece, const Arc& arc) {
        if (lookout.watches()) lookout.along(piece);
        if (logs) logs->piece(piece, arc);
        if (meter) meter->piece(piece, arc);
      };
    }
    if (plan_.exponent) {
      options.on_transition = [&](const Transition& event) {
        if (logs) logs->transition(event);
      };
    }
    const Trajectory trajectory = simulator.run(options);
    if (trajectory.end.why == Why::cancelled && lookout.verdict().empty()) throw Stopped{};
    result.why = settled ? Why::count : trajectory.end.why;
    result.message = settled ? "" : trajectory.end.message;
    if (result.why == Why::cancelled || (own_end && result.why == Why::time)) {
      result.why = Why::stalled;
      result.message = !lookout.verdict().empty() ? lookout.verdict()
                       : result.seen > 0          ? fmt::format("'{}' is not met any more", section.name)
                                                  : fmt::format("'{}' is never met", section.name);
    }
    if (result.why == Why::count) result.message.clear();

    points.keep_last(at_most);
    if (plan_.settle == 0)  // a run that ended early has not left its transient behind
      points.keep_last(static_cast<std::size_t>(std::max(0L, result.seen - plan_.skip)));
    if (result.why == Why::count && !settled) found = look(points, driving_period);
    if (result.why == Why::count) result.last = last_of(points, driving_period);
    result.period = found.period;
    result.slow = found.slow;
    count_per_period(points, result);
    if (logs) result.exponent = logs->exponent(points.t(), result.period);
    if (meter) {
      const std::size_t whole = points.size() > 0 ? points.size() - 1 : 0;
      result.measures = meter->values(result.period > 0 ? static_cast<std::size_t>(result.period) : whole);
    }
    if (plan_.keep_points) result.points = points.values();
  }

  Recurrence look(const LastPoints& points, double driving_period) const {
    const std::size_t width = points.width(), count = points.size();
    Numbers tolerance = plan_.tolerance;
    tolerance.resize(width, std::numeric_limits<double>::quiet_NaN());
    for (std::size_t s = 0; s < width; ++s) {
      if (!std::isnan(tolerance[s])) continue;
      double size = 0;
      for (std::size_t i = s; i < points.values().size(); i += width)
        size = std::max(size, std::abs(points.values()[i]));
      tolerance[s] = std::max(1e-6 * size, 1e-12);
    }
    if (driving_period <= 0) return find_period(points.values(), tolerance, plan_.longest);
    // Points that agree at different phases of the drive are not the same.
    Numbers wide;
    tolerance.insert(tolerance.end(), 2, 1e-6);
    for (std::size_t i = 0; i < count; ++i) {
      wide.insert(wide.end(), points.values().begin() + static_cast<std::ptrdiff_t>(i * width),
                  points.values().begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      const double phase = 2 * M_PI * std::fmod(points.t()[i] / driving_period, 1.0);
      wide.push_back(std::cos(phase));
      wide.push_back(std::sin(phase));
    }
    return find_period(wide, tolerance, plan_.longest);
  }

  static Numbers last_of(const LastPoints& points, double driving_period) {
    if (points.size() == 0) return {};
    Numbers last(points.values().end() - static_cast<std::ptrdiff_t>(points.width()), points.values().end());
    last.push_back(points.t().back());
    last.push_back(driving_period);
    return last;
  }

  static void count_per_period(const LastPoints& points, SweepRun& result) {
    if (points.size() < 2) return;
    const std::size_t end = points.size() - 1;
    const std::size_t back = result.period > 0 ? static_cast<std::size_t>(result.period) : end;
    const double share = result.period > 0 ? 1 : 1 / static_cast<double>(back);
    result.time = share * (points.t()[end] - points.t()[end - back]);
    result.sliding = share * static_cast<double>(points.slides(end) - points.slides(end - back));
    result.events = share * static_cast<double>(points.events(end) - points.events(end - back));
  }

  const Program& program_;
  const Model& model_;
  const SweepPlan& plan_;
  bool strobe_;
  bool phased_;  // points of the section come at any phase of a drive
};

// ---- runs as bytes -------------------------------------------------------------------------------------------------

Bytes pack_runs(const SweepRuns& runs) {
  Packer pack;
  for (const SweepRun& r : runs) {
    pack.integer(r.period).integer(r.slow ? 1 : 0).number(r.time).number(r.sliding).number(r.events);
    pack.number(r.exponent);
    pack.integer(static_cast<std::int64_t>(r.why)).text(r.message).integer(r.seen).numbers(r.points).numbers(r.last);
    pack.numbers(r.measures);
  }
  return pack.take();
}

SweepRun unpack_run(Unpacker& unpack) {
  SweepRun r;
  r.period = unpack.integer();
  r.slow = unpack.integer() != 0;
  r.time = unpack.number();
  r.sliding = unpack.number();
  r.events = unpack.number();
  r.exponent = unpack.number();
  r.why = static_cast<Why>(unpack.integer());
  r.message = unpack.text();
  r.seen = unpack.integer();
  r.points = unpack.numbers();
  r.last = unpack.numbers();
  r.measures = unpack.numbers();
  return r;
}

SweepRuns unpack_runs(const Bytes& bytes) {
  SweepRuns runs;
  for (Unpacker unpack(bytes); !unpack.empty();) runs.push_back(unpack_run(unpack));
  return runs;
}

/// Runs without points are small: several share an item, so that the bookkeeping stays small too.
std::size_t runs_per_item(const SweepPlan& plan) {
  return plan.direction == Continue::none && !plan.keep_points ? 16 : 1;
}

bool goes_down(const SweepPlan& plan, std::size_t start) {
  return plan.direction == Continue::down || (plan.direction == Continue::both && start % 2 == 1);
}

}  // namespace

Varied vary(const Model& model, const std::string& name, const Expr& quantity, std::vector<double> values) {
  const std::vector<double> parameters = parameter_values(model);
  std::vector<std::size_t> inside;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (depends_on(quantity, parameter_symbol(model, static_cast<int>(i)))) inside.push_back(i);
  }
  if (inside.size() != 1)
    misuse(fmt::format("'{}' contains {} parameters", name, inside.empty() ? "no" : "several"),
           "vary a parameter, or a formula of one such as 1/omega");
  const std::size_t index = inside.front();
  if (std::find(model.structural.begin(), model.structural.end(), static_cast<int>(index)) != model.structural.end())
    misuse(fmt::format("'{}' decides how many equations there are", model.parameters[index].name),
           fmt::format("run the model once for each value: `parameter` {}=...", model.parameters[index].name));
  Varied varied{.name = name, .parameter = static_cast<int>(index), .values = std::move(values), .setting = {}};
  if (quantity == parameter_symbol(model, static_cast<int>(index))) {
    varied.setting = varied.values;
    return varied;
  }

  const std::string& parameter = model.parameters[index].name;
  const double now = parameters[index] == 0 ? 1 : parameters[index];
  const Quantity q{model, quantity, index};
  // Steps of a factor 2 to either side, as long as the formula is finite and monotone.
  std::vector<double> at{now};
  const auto extend = [&](double factor) {
    double p = now, value = q(p);
    double direction = 0;
    for (int i = 0; i < 1000 && std::isfinite(value); ++i) {
      const double next = p * factor, then = q(next);
      if (!std::isfinite(then) || !std::isnormal(next) || then == value) break;
      if (direction == 0) direction = then - value;
      if ((then - value) * direction < 0) break;
      at.push_back(next);
      p = next;
      value = then;
    }
  };
  extend(2);
  std::reverse(at.begin(), at.end());
  extend(0.5);
  const double first = q(at.front()), last = q(at.back());
  for (const double value : varied.values) {
    if (!(value >= std::min(first, last) && value <= std::max(first, last)))
      misuse(fmt::format("{} = {} is out of reach around {} = {}", name, print_number(value), parameter,
                         print_number(parameters[index])),
             fmt::format("vary {} itself", parameter));
    varied.setting.push_back(solve_between(q, at.front(), at.back(), value));
  }
  // Monotone between neighbours too, or the values found are one choice of several.
  const auto [low, high] = std::minmax_element(varied.setting.begin(), varied.setting.end());
  const double from = q(*low), to = q(*high);
  double former = from;
  for (int i = 1; i <= 1000; ++i) {
    const double value = q(*low + (*high - *low) * i / 1000);
    if ((value - former) * (to - from) < 0)
      misuse(fmt::format("'{}' is not monotone between {} = {} and {}", name, parameter, print_number(*low),
                         print_number(*high)),
             fmt::format("vary {} itself, or a smaller range", parameter));
    former = value;
  }
  return varied;
}

std::size_t SweepPlan::starts_per_value() const {
  const std::size_t states = starts.empty() ? static_cast<std::size_t>(random_starts) : starts.size();
  return states * (direction == Continue::both ? 2 : 1);
}

std::size_t SweepPlan::runs() const {
  std::size_t n = starts_per_value();
  for (const Varied& v : varied) n *= v.values.size();
  return n;
}

std::string SweepPlan::start_name(std::size_t start) const {
  const std::size_t directions = direction == Continue::both ? 2 : 1;
  const std::string number = starts_per_value() > directions ? fmt::format("{}", start / directions + 1) : "";
  if (direction == Continue::none) return number.empty() ? "1" : number;
  return number + (number.empty() ? "" : " ") + (goes_down(*this, start) ? "down" : "up");
}

void SweepPlan::check(const Model& model) const {
  if (varied.empty() || varied.size() > 2)
    misuse(fmt::format("{} parameters are varied", varied.size()), "vary one or two: omega=0.15:2:400");
  if (varied.size() == 2 && varied[0].parameter == varied[1].parameter)
    misuse(fmt::format("'{}' is varied twice", model.parameters[static_cast<std::size_t>(varied[0].parameter)].name),
           "vary two parameters, or one");
  for (const Varied& v : varied) {
    if (v.values.empty()) misuse(fmt::format("'{}' has no values", v.name), "give a range such as 0.15:2:400");
  }
  const auto within = [](const char* name, long value, long least, long most) {
    if (value < least || value > most)
      misuse(fmt::format("`{}` {}: {}", name, value, value < least ? "no such number of points" : "too many points"),
             fmt::format("give `{}` {} to {}", name, least, most));
  };
  within("points", count, 3, 10'000'000);
  within("skip", skip, 0, 10'000'000'000);
  within("settle", settle, 0, 10'000'000'000);
  if (longest < 1) misuse(fmt::format("`longest` {}: no such period", longest), "give 1 or more");
  if (starts.empty() && random_starts < 1)
    misuse(fmt::format("`starts` {}: no such number", random_starts), "give 1 or more");
  for (const double t : tolerance) {
    if (t <= 0) misuse("a period tolerance is not positive", "give a distance above 0, in the units of the state");
  }
  constexpr double most_numbers = 2e8;
  const double numbers =
      keep_points ? static_cast<double>(runs()) * static_cast<double>(count) * static_cast<double>(model.states.size())
                  : 0;
  if (numbers > most_numbers)
    misuse(fmt::format("{} runs with {} points each are {:.2g} numbers", runs(), count, numbers),
           fmt::format("at most {:.0e} are kept: give fewer values, or a smaller -n", most_numbers));
  if (exponent && run.step)
    misuse("exponents come from the engine 'event', not 'step'", "choose another colour, or another engine");
  if (runs() > 1'000'000'000) misuse(fmt::format("these are {} runs", runs()), "give fewer values");
}

SweepJob sweep_job(const Program& program, const SweepPlan& plan, std::string identity,
                   std::function<void(std::size_t run, const SweepRun& done)> on_run) {
  plan.check(program.model());
  const auto sweeper = std::make_shared<const Sweeper>(program, plan);
  const std::size_t runs = plan.runs(), block = runs_per_item(plan);
  SweepJob job{
      .count = (runs + block - 1) / block, .pack = pack_runs, .unpack = unpack_runs, .identity = std::move(identity)};
  job.make_worker = [&program] { return Worker(std::make_shared<Simulator>(program)); };
  job.run = [sweeper, runs, block](std::size_t item, const SweepRuns* before, Worker& worker,
                                   const std::stop_token& stop) {
    Simulator& simulator = *std::any_cast<std::shared_ptr<Simulator>&>(worker);
    SweepRuns done;
    for (std::size_t run = item * block; run < std::min(runs, (item + 1) * block); ++run)
      done.push_back(sweeper->compute(simulator, run, before ? &before->front() : nullptr, stop));
    return done;
  };
  if (on_run) {
    job.on_item = [on_run = std::move(on_run), block](std::size_t item, const SweepRuns& done) {
      for (std::size_t i = 0; i < done.size(); ++i) on_run(item * block + i, done[i]);
    };
  }
  if (plan.direction == Continue::none) return job;
  const std::size_t starts = plan.starts_per_value(), values = plan.varied.front().values.size();
  job.after = [&plan, starts, values](std::size_t run) {
    const std::size_t value = run / starts % values;
    const bool down = goes_down(plan, run % starts);
    if (value == (down ? values - 1 : 0)) return no_item;
    return down ? run + starts : run - starts;
  };
  return job;
}

std::vector<std::optional<SweepRun>> sweep_runs(const SweepPlan& plan, WorkResult<SweepRuns> result) {
  std::vector<std::optional<SweepRun>> runs(plan.runs());
  const std::size_t block = runs_per_item(plan);
  for (std::size_t item = 0; item < result.items.size(); ++item) {
    if (!result.items[item]) continue;
    std::move(result.items[item]->begin(), result.items[item]->end(),
              runs.begin() + static_cast<std::ptrdiff_t>(item * block));
    result.items[item].reset();
  }
  return runs;
}

}  // namespace saltus
