#include "ask/run.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ask/measures.hpp"
#include "ask/record.hpp"
#include "ask/sensitivity.hpp"
#include "expr/print.hpp"
#include "model/clocks.hpp"
#include "model/program.hpp"

namespace saltus {
namespace {

/// The dense output of a run, as far as it fits into memory.
class PieceStore {
 public:
  explicit PieceStore(size_t states) : states_(states) {}

  void add(Piece piece, const Arc& arc) {
    widest_ = std::max(widest_, piece.coefficients.size() / states_);
    if (left_out_ > 0 || (pieces_.size() + 1) * widest_ * states_ > most_numbers) {
      ++left_out_;
      return;
    }
    if (arcs_.empty() || !(arcs_.back() == arc)) arcs_.push_back(arc);
    piece.arc = static_cast<int>(arcs_.size()) - 1;
    pieces_.push_back(std::move(piece));
  }

  std::string note() const {
    if (left_out_ == 0) return "";
    const double end = pieces_.empty() ? NAN : pieces_.back().start + pieces_.back().length;
    return fmt::format("pieces are kept up to t = {:.6g}; {} later ones did not fit", end, left_out_);
  }

  void move_to(Trajectory& trajectory) {
    trajectory.pieces = std::move(pieces_);
    trajectory.arcs = std::move(arcs_);
  }

 private:
  static constexpr size_t most_numbers = 20'000'000;
  size_t states_;
  std::vector<Piece> pieces_;
  std::vector<Arc> arcs_;
  size_t widest_ = 1;  // coefficients of a state
  long left_out_ = 0;
};

void check_sampling(const Sampling& sample, const Model& model, const RunOptions& options) {
  if (sample.kind == Sampling::Kind::every) {
    const double rows = std::abs(options.until - options.from) / sample.interval;
    const double most = 1e8 / static_cast<double>(quantity_names(model).size());
    if (rows > most)
      throw Error(ErrorKind::usage, fmt::format("`sample` {} asks for {:.3g} rows", sample.interval, rows), {},
                  fmt::format("at most {:.2g} fit: choose a longer interval", most));
  }
  const auto [low, high] = std::minmax(options.from, options.until);
  const double direction = options.until < options.from ? -1 : 1;
  double last = options.from;
  for (const double t : sample.times) {
    if (!(t >= low && t <= high))
      throw Error(ErrorKind::usage, fmt::format("`sample`: the time {} lies outside the run", print_number(t)), {},
                  fmt::format("the run goes from {} to {}", print_number(options.from), print_number(options.until)));
    if (direction * (t - last) < 0)
      throw Error(ErrorKind::usage,
                  fmt::format("`sample`: the time {} comes after {}", print_number(t), print_number(last)), {},
                  "give the times in the order of the run");
    last = t;
  }
}

/// The window as two times in the order of the run.
std::pair<double, double> read_window(const std::string& text, const Model& model, const RunOptions& options) {
  std::pair window(options.from, options.until);
  if (text.empty()) return window;
  const std::string given = fmt::format("`window` {}", text);
  const size_t colon = text.find(':');
  if (colon == text.npos || text.find(':', colon + 1) != text.npos)
    misuse(fmt::format("{}: this is no stretch of time", given), "write `window` 0.8:1, 0.8: or :1");
  const auto blank = [](const std::string& s) { return s.find_first_not_of(' ') == s.npos; };
  const std::string first = text.substr(0, colon), second = text.substr(colon + 1);
  if (!blank(first)) window.first = read_number(first, given + ":", model);
  if (!blank(second)) window.second = read_number(second, given + ":", model);
  const bool backward = options.until < options.from;
  if (backward ? window.first < window.second : window.second < window.first) std::swap(window.first, window.second);
  const auto [low, high] = std::minmax(options.from, options.until);
  window = {std::clamp(window.first, low, high), std::clamp(window.second, low, high)};
  if (window.first == window.second && low != high)
    misuse(fmt::format("{} shows nothing of the run", given),
           fmt::format("the run goes from {} to {}", print_number(options.from), print_number(options.until)));
  return window;
}

/// The part of a piece from tau = a to tau = b, as a piece of its own.
Piece part_of(const Piece& piece, size_t states, double a, double b) {
  Piece part = piece;
  part.start = piece.start + a;
  part.length = b - a;
  const size_t powers = piece.coefficients.size() / states;
  for (size_t i = 0; i < states && a != 0; ++i) {  // p(a + tau): synthetic division by tau - a, again and again
    double* c = part.coefficients.data() + i * powers;
    for (size_t k = 0; k + 1 < powers; ++k) {
      for (size_t j = powers - 1; j-- > k;) c[j] += a * c[j + 1];
    }
  }
  return part;
}

/// Both are told, in this order.
template <class... Of>
std::function<void(const Of&...)> both(std::function<void(const Of&...)> first,
                                       std::function<void(const Of&...)> second) {
  if (!first || !second) return first ? first : second;
  return [first = std::move(first), second = std::move(second)](const Of&... what) {
    first(what...);
    second(what...);
  };
}

}  // namespace

RunPlan plan(RunQuestion question) {
  const Model& model = question.system.model();
  RunOptions options = run_options(question.solve, model);
  if (question.start) {
    options.initial = *question.start;
    options.check(model);
  }
  check_ticks(model, options.parameters, options.from, options.until);
  check_sampling(question.sample, model, options);
  options.max_kept_events = question.max_kept_events;
  options.max_events = question.max_events;
  std::vector<Measure> measures = read_measures(question.measures, model);
  const std::pair<double, double> window = read_window(question.window, model, options);
  return {std::move(question), std::move(options), std::move(measures), window};
}

RunAnswer ask(const RunPlan& plan, const Observer& observer) {
  const RunQuestion& question = plan.question;
  const Model& model = question.system.model();
  const Program& program = question.system.program(question.solve.attract.value_or(0));
  RunOptions options = plan.options;
  RunTables rows(program, options, question.sample, plan.window.first);
  PieceStore pieces(model.states.size());
  Meter meter(program, options, plan.measures);
  const auto [low, high] = std::minmax(plan.window.first, plan.window.second);
  const auto seen = [&](double t) { return question.window.empty() || (t >= low && t <= high); };
  if (question.rows || question.dense || !plan.measures.empty()) {
    options.on_piece = [&](const Piece& piece, const Arc& arc) {
      if (question.dense) pieces.add(piece, arc);
      double a = 0, b = piece.length;
      if (!question.window.empty()) {
        const auto [first, last] = std::minmax(0.0, piece.length);
        a = std::clamp(plan.window.first - piece.start, first, last);
        b = std::clamp(plan.window.second - piece.start, first, last);
        if (a == b) return;
      }
      meter.stretch(piece, arc, a, b);
      if (!question.rows) return;
      if (a == 0 && b == piece.length) {
        rows.piece(piece, arc);
      } else {
        rows.piece(part_of(piece, model.states.size(), a, b), arc);
      }
    };
  }
  if (question.rows) {
    options.on_event = [&](const Event& event, const Arc& after) {
      if (seen(event.t)) rows.event(event, after);
    };
  }
  options.on_piece = both(options.on_piece, observer.on_piece);
  options.on_event = both(options.on_event, observer.on_event);
  options.on_transition = observer.on_transition;
  std::optional<SensitivityRun> tangents;
  if (question.sensitivity) tangents.emplace(program, options, *question.sensitivity);
  if (tangents) {
    tangents->attach(options);
    options.turns_stiff = false;
  }
  options.progress = [&](double t) { return observer({"t", options.from, t, options.until}); };
  options.stop = [&] { return observer.stopped(); };

  RunAnswer answer{.system = question.system, .options = plan.options, .notes = notes_on(model)};
  answer.trajectory = simulate(program, options);
  const auto note = [&](const std::vector<std::string>& more) {
    answer.notes.insert(answer.notes.end(), more.begin(), more.end());
  };
  note(answer.trajectory.messages);
  std::erase_if(answer.trajectory.events, [&](const Event& event) { return !seen(event.t); });
  const Gathered gathered = meter.take();
  for (size_t m = 0; m < plan.measures.size(); ++m)
    answer.measures.emplace_back(plan.measures[m].name, value(plan.measures[m], m, gathered));
  if (!question.window.empty() && !seen(answer.trajectory.end.t) &&
      std::abs(answer.trajectory.end.t - options.from) < std::abs(plan.window.first - options.from))
    note({"the run ended before the window"});
  if (tangents) {
    answer.sensitivity = tangents->result();
    note(tangents->notes());
  }
  if (question.rows) {
    rows.finish(answer.trajectory);
    answer.rows = rows.take_rows();
    if (!answer.rows.note.empty()) note({answer.rows.note});
  }
  if (question.dense) {
    if (!pieces.note().empty()) note({pieces.note()});
    pieces.move_to(answer.trajectory);
  }
  return answer;
}

}  // namespace saltus
