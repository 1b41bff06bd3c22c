#include "ask/run.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    const double most = 1e8 / static_cast<double>(row_columns(model).size());
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
  return {std::move(question), std::move(options)};
}

RunAnswer ask(const RunPlan& plan, const Observer& observer) {
  const RunQuestion& question = plan.question;
  const Model& model = question.system.model();
  const Program& program = question.system.program(question.solve.attract.value_or(0));
  RunOptions options = plan.options;
  RunTables rows(program, options, question.sample);
  PieceStore pieces(model.states.size());
  if (question.rows || question.dense) {
    options.on_piece = [&](const Piece& piece, const Arc& arc) {
      if (question.rows) rows.piece(piece, arc);
      if (question.dense) pieces.add(piece, arc);
    };
  }
  if (question.rows) options.on_event = [&](const Event& event, const Arc& after) { rows.event(event, after); };
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
