#include "analysis/basins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "analysis/random.hpp"

namespace saltus {
namespace {

constexpr std::size_t cells_per_item = 512;  ///< of the cell mapping: a few milliseconds
/// Runs until they settle: an item has at most 32 of them and as few as 1/512 of all, since an unfinished item is lost
/// when interrupted.
constexpr std::size_t most_settled_per_item = 32, settled_items = 512;
constexpr std::size_t first_runs = 256;  ///< from which the known attractors come
constexpr std::size_t most_attractors = 256;
constexpr int sample_points = 256;  ///< of an attractor without a period
constexpr long known_sample = 500;  ///< points after which a run is compared with known ones without a period
constexpr double known_within = 10;
constexpr std::size_t coarsest = 16;  ///< distance of the cells that refinement begins with, on large grids
constexpr std::size_t least_checked = 200;
constexpr int most_checks = 10;                  ///< more than enough to run every cell
constexpr std::size_t coarse_cells = 50;         ///< along each axis, which refinement begins with on small ones
constexpr CellIndex not_mapped = sink_cell - 1;  ///< as an image: the computation was interrupted

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

using Kind = CellFate::Kind;

CellFate fate_of(const End& end) {
  if (end.why == Why::time) return {Kind::no_return};
  return {Kind::ended, end.why};
}

// ---- one run -------------------------------------------------------------------------------------------------------

/// Runs from points of the box; one per thread.
class Shooter {
 public:
  Shooter(const SectionMap& map, const Mesh& mesh, const BasinsOptions& options, std::vector<double> tolerance,
          std::span<const Attractor> known)
      : map_(map),
        mesh_(mesh),
        most_points_(options.points),
        known_(known),
        followed_(known.size()),
        simulator_(map.program),
        run_(map.run),
        values_(mesh.axes().size()),
        settling_(std::move(tolerance), options.most_period) {
    run_.keep_events = false;
    run_.keep_pieces = false;
    run_.to_the_end = false;
    run_.one_of_many = true;
    run_.on_section = [this](const Passing& p) {
      if (p.section != map_.section) return true;
      quiet_ = 0;
      if (++passed_ % map_.repeat != 0) return true;
      return take_(p.state);
    };
    run_.progress = [this](double) { return quiet_++ < map_.patience / 256; };
    run_.stop = [this] { return stopped_ = stopped_ || (asks_to_stop_ && asks_to_stop_()); };
  }
  Shooter(const Shooter&) = delete;
  Shooter& operator=(const Shooter&) = delete;

  /// Later runs call this function now and then; a run that is asked to stop throws Stopped.
  void ask(std::function<bool()> asks_to_stop) {
    asks_to_stop_ = std::move(asks_to_stop);
    stopped_ = false;
  }

  /// The cell that holds the image of a cell's centre; the sink if there is none.
  CellIndex image(std::size_t cell) {
    CellIndex found = sink_cell;
    take_ = [&](std::span<const double> x) {
      found = mesh_.locate(on_axes(x));
      return false;
    };
    return run(cell) ? sink_cell : found;
  }

  /// Calls `see` with the first points of the section from a cell.
  void look(std::size_t cell, long points, const std::function<void(std::span<const double>)>& see) {
    long seen = 0;
    take_ = [&](std::span<const double> x) {
      see(x);
      return ++seen < points;
    };
    run(cell);
  }

  /// Where a cell settles: on a known attractor, on one of its own, or not.
  struct Settled {
    std::optional<CellFate> fate;
    std::optional<Attractor> attractor;
  };
  Settled settle(std::size_t cell) {
    Settled result;
    settling_.clear();
    std::fill(followed_.begin(), followed_.end(), 0);
    take_ = [&](std::span<const double> x) {
      if ((result.fate = follows(x))) return false;
      if (settling_.add(x)) {
        result.attractor = settling_.cycle();
        return false;
      }
      if (settling_.count() % known_sample == 0 && (result.fate = resembles())) return false;
      if (settling_.count() < most_points_) return true;
      result.attractor = settling_.verdict(sample_points);
      return false;
    };
    if (const auto fate = run(cell)) result.fate = fate;
    return result;
  }

 private:
  /// Empty if the run ended because it was asked to stop.
  std::optional<CellFate> run(std::size_t cell) {
    mesh_.centre(cell, values_);
    if (!start_state(map_, mesh_, values_, run_.initial)) return CellFate{Kind::no_start};
    quiet_ = passed_ = 0;
    try {
      simulator_.run(run_, trajectory_);
      if (trajectory_.end.why == Why::stop) return std::nullopt;
      if (stopped_) throw Stopped{};
      if (trajectory_.end.why == Why::cancelled) return CellFate{Kind::no_return};
      return fate_of(trajectory_.end);
    } catch (const Error&) {
      return CellFate{Kind::no_start};
    }
  }

  std::span<const double> on_axes(std::span<const double> x) {
    for (std::size_t a = 0; a < values_.size(); ++a) values_[a] = x[at(mesh_.axes()[a].state)];
    return values_;
  }

  /// The known attractor without a period that the points cover.
  std::optional<CellFate> resembles() const {
    for (std::size_t k = 0; k < known_.size(); ++k) {
      if (known_[k].period == 0 && same_attractor(settling_.sample(sample_points), known_[k], settling_.tolerance()))
        return CellFate::to(k);
    }
    return std::nullopt;
  }

  /// The known attractor that the points have followed for a period and a little more.
  std::optional<CellFate> follows(std::span<const double> x) {
    const std::size_t n = x.size();
    for (std::size_t k = 0; k < known_.size(); ++k) {
      const Attractor& a = known_[k];
      if (a.period == 0) continue;
      bool near = false;
      for (std::size_t i = 0; i < a.count(n) && !near; ++i)
        near = distance_in(settling_.tolerance(), x, a.point(i, n)) <= known_within;
      followed_[k] = near ? followed_[k] + 1 : 0;
      if (followed_[k] >= a.period + 2) return CellFate::to(k);
    }
    return std::nullopt;
  }

  const SectionMap& map_;
  const Mesh& mesh_;
  long most_points_;
  std::span<const Attractor> known_;
  std::vector<long> followed_;
  Simulator simulator_;
  RunOptions run_;
  Trajectory trajectory_;
  std::vector<double> values_;
  Settling settling_;
  std::function<bool(std::span<const double>)> take_;
  std::function<bool()> asks_to_stop_;
  bool stopped_ = false;
  long quiet_ = 0;   // reports of the engine since the last point
  long passed_ = 0;  // points of the section in this run
};

// ---- many runs -----------------------------------------------------------------------------------------------------

/// Inputs and results that the stages of one computation share.
struct Study {
  const SectionMap& map;
  const Mesh& mesh;
  const BasinsOptions& options;
  std::vector<double> tolerance = {};
  std::vector<Attractor> known = {};  ///< runs end when they follow one of these
  std::vector<Attractor> found = {};  ///< known ones first
  int stage = 0;
  bool interrupted = false;

  std::size_t states() const { return tolerance.size(); }
};

std::filesystem::path stage_file(const std::filesystem::path& folder, int stage) {
  return folder / fmt::format("{}", stage);
}

/// Results of a stretch of cells, and their encoding as bytes.
template <class Value>
struct Stage {
  std::string_view name;
  std::size_t count, per_item;
  std::function<Value(Shooter&, std::size_t from, std::size_t to)> run;
  Bytes (*pack)(const Value&);
  Value (*unpack)(const Bytes&);
};

/// Runs a stage, and gives the value of each item; none where it was interrupted.
template <class Value>
std::vector<std::optional<Value>> run_stage(Study& study, const Stage<Value>& stage) {
  const auto& [name, count, per_item, run, pack, unpack] = stage;
  ++study.stage;
  if (count == 0) return {};
  Job<Value> job{.count = (count + per_item - 1) / per_item, .pack = pack, .unpack = unpack};
  if (study.interrupted) return std::vector<std::optional<Value>>(job.count);
  job.run = [&stage](std::size_t item, const Value*, Worker& worker, const std::stop_token& stop) {
    Shooter& shooter = *std::any_cast<std::shared_ptr<Shooter>&>(worker);
    shooter.ask([&stop] { return stop.stop_requested(); });
    return stage.run(shooter, item * stage.per_item, std::min(stage.count, (item + 1) * stage.per_item));
  };
  job.make_worker = [&] {
    return Worker(std::make_shared<Shooter>(study.map, study.mesh, study.options, study.tolerance, study.known));
  };
  job.identity = fmt::format("{}\nstage {}: {} {} by {}", study.options.identity, study.stage, name, count, per_item);
  WorkOptions work{.threads = study.options.threads};
  if (!study.options.checkpoint.empty()) work.checkpoint = stage_file(study.options.checkpoint, study.stage);
  if (study.options.progress) {
    work.progress = [&](const WorkProgress& p) {
      const auto cells = [&](std::size_t items) {
        return static_cast<double>(std::min(stage.count, items * stage.per_item));
      };
      return study.options.progress(stage.name, cells(p.resumed), cells(p.done), static_cast<double>(stage.count));
    };
  }
  WorkResult<Value> result = run_job(job, work);
  study.interrupted = study.interrupted || result.missing > 0;
  return std::move(result.items);
}

/// Where some cells settle; the attractors that were not known before follow those that were.
struct SettledCells {
  std::vector<CellFate> fates;
  std::vector<Attractor> own;
};

Bytes pack_settled(const SettledCells& cells) {
  Packer pack;
  pack.integer(static_cast<std::int64_t>(cells.fates.size()));
  for (const CellFate& f : cells.fates)
    pack.integer(static_cast<std::int64_t>(f.kind)).integer(static_cast<std::int64_t>(f.why)).integer(f.basin);
  pack.integer(static_cast<std::int64_t>(cells.own.size()));
  for (const Attractor& a : cells.own) pack.integer(a.period).numbers(a.points);
  return pack.take();
}

SettledCells unpack_settled(const Bytes& bytes) {
  Unpacker unpack(bytes);
  SettledCells cells;
  for (auto left = unpack.integer(); left > 0; --left) {
    const auto kind = static_cast<Kind>(unpack.integer());
    const auto why = static_cast<Why>(unpack.integer());
    cells.fates.push_back({kind, why, static_cast<std::int32_t>(unpack.integer())});
  }
  for (auto left = unpack.integer(); left > 0; --left) {
    Attractor a{.period = static_cast<int>(unpack.integer()), .points = {}};
    a.points = unpack.numbers();
    cells.own.push_back(std::move(a));
  }
  return cells;
}

using Images = std::vector<CellIndex>;

Bytes pack_images(const Images& images) {
  Packer pack;
  for (const CellIndex image : images) pack.integer(image);
  return pack.take();
}

Images unpack_images(const Bytes& bytes) {
  Images images;
  for (Unpacker unpack(bytes); !unpack.empty();) images.push_back(static_cast<CellIndex>(unpack.integer()));
  return images;
}

/// The place of an attractor among those found, which grow by it if it is new; unsettled if there are too many.
CellFate fate_on(Study& study, const Attractor& attractor) {
  for (std::size_t i = 0; i < study.found.size(); ++i) {
    if (same_attractor(attractor, study.found[i], study.tolerance)) return CellFate::to(i);
  }
  if (study.found.size() >= most_attractors) return {Kind::unsettled};
  study.found.push_back(attractor);
  return CellFate::to(study.found.size() - 1);
}

/// Runs cells until they settle. Gives for each its fate, attractors by their places in study.found; the same whatever
/// the order.
std::vector<CellFate> settle_cells(Study& study, std::string_view name, std::span<const CellIndex> cells) {
  const std::size_t known = study.known.size();
  const std::size_t per_item = std::clamp<std::size_t>(cells.size() / settled_items, 1, most_settled_per_item);
  const auto run = [&](Shooter& shooter, std::size_t from, std::size_t to) {
    SettledCells done;
    for (std::size_t i = from; i < to; ++i) {
      Shooter::Settled settled = shooter.settle(at(cells[i]));
      if (settled.attractor) {
        std::size_t k = 0;
        while (k < done.own.size() && !same_attractor(*settled.attractor, done.own[k], study.tolerance)) ++k;
        if (k == done.own.size()) done.own.push_back(std::move(*settled.attractor));
        settled.fate = CellFate::to(known + k);
      }
      done.fates.push_back(settled.fate.value_or(CellFate{Kind::unsettled}));
    }
    return done;
  };
  const auto items = run_stage<SettledCells>(study, {name, cells.size(), per_item, run, pack_settled, unpack_settled});

  std::vector<CellFate> result(cells.size());
  for (std::size_t item = 0; item < items.size(); ++item) {
    if (!items[item]) continue;
    std::vector<CellFate> own;
    for (const Attractor& a : items[item]->own) own.push_back(fate_on(study, a));
    for (std::size_t i = 0; i < items[item]->fates.size(); ++i) {
      const CellFate& f = items[item]->fates[i];
      result[item * per_item + i] = f.settles() && f.place() >= known ? own.at(f.place() - known) : f;
    }
  }
  return result;
}

/// Cells spread evenly over the box, in an order that fills it ever more densely (multiples of irrational numbers).
std::vector<CellIndex> spread_cells(const Mesh& mesh, std::size_t count) {
  std::vector<CellIndex> cells;
  if (mesh.scattered()) {
    for (std::size_t i = 0; i < std::min(count, mesh.cells()); ++i) cells.push_back(static_cast<CellIndex>(i));
    return cells;
  }
  double root = 2;  // of x^(d+1) = x + 1
  const double d = static_cast<double>(mesh.axes().size());
  for (int i = 0; i < 60; ++i) root = std::pow(1 + root, 1 / (d + 1));
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t cell = 0, stride = 1;
    double step = 1;
    for (const CellAxis& axis : mesh.axes()) {
      step /= root;
      const double u = 0.5 + static_cast<double>(i) * step;
      cell += stride * std::min(axis.cells() - 1,
                                static_cast<std::size_t>((u - std::floor(u)) * static_cast<double>(axis.cells())));
      stride *= axis.cells();
    }
    cells.push_back(static_cast<CellIndex>(cell));
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

/// States on an axis are compared to a millionth of its length; others of the largest value met on a few short runs.
/// Alone it may be interrupted; of several ranks all must come to the same end.
std::vector<double> choose_tolerance(const SectionMap& map, const Mesh& mesh, const BasinsOptions& options,
                                     bool& interrupted) {
  std::vector<double> tolerance = options.tolerance;
  tolerance.resize(map.run.initial.size(), std::numeric_limits<double>::quiet_NaN());
  for (const CellAxis& axis : mesh.axes()) {
    double& chosen = tolerance[at(axis.state)];
    if (std::isnan(chosen)) chosen = 1e-6 * (axis.to() - axis.from());
  }
  if (std::none_of(tolerance.begin(), tolerance.end(), [](double v) { return std::isnan(v); })) return tolerance;
  std::vector<double> largest(tolerance.size(), 0);
  Shooter shooter(map, mesh, options, std::vector<double>(tolerance.size(), 1), {});
  if (options.progress && ranks() == 1) shooter.ask([&] { return !options.progress("scales", 0, 0, 1); });
  for (const CellIndex cell : spread_cells(mesh, 9)) try {
      shooter.look(at(cell), 20, [&](std::span<const double> x) {
        for (std::size_t i = 0; i < x.size(); ++i) largest[i] = std::max(largest[i], std::abs(x[i]));
      });
    } catch (const Stopped&) {
      interrupted = true;
      break;
    }
  for (std::size_t i = 0; i < tolerance.size(); ++i) {
    if (std::isnan(tolerance[i])) tolerance[i] = 1e-6 * (largest[i] > 0 ? largest[i] : 1.0);
  }
  return tolerance;
}

// ---- cell mapping --------------------------------------------------------------------------------------------------

Images map_cells(Study& study) {
  const auto run = [](Shooter& shooter, std::size_t from, std::size_t to) {
    Images images;
    for (std::size_t cell = from; cell < to; ++cell) images.push_back(shooter.image(cell));
    return images;
  };
  const auto items =
      run_stage<Images>(study, {"cells", study.mesh.cells(), cells_per_item, run, pack_images, unpack_images});
  Images images(study.mesh.cells(), not_mapped);
  for (std::size_t item = 0; item < items.size(); ++item) {
    if (items[item])
      std::copy(items[item]->begin(), items[item]->end(),
                images.begin() + static_cast<std::ptrdiff_t>(item * cells_per_item));
  }
  return images;
}

/// A cycle of cells as an attractor: the centres of its cells.
Attractor cycle_attractor(const Study& study, const CellCycle& cycle) {
  Attractor result{.period = static_cast<int>(cycle.period()), .points = {}};
  std::vector<double> values(study.mesh.axes().size()), state = study.map.run.initial;
  for (const CellIndex cell : cycle.cells) {
    study.mesh.centre(at(cell), values);
    start_state(study.map, study.mesh, values, state);
    result.points.insert(result.points.end(), state.begin(), state.end());
  }
  return result;
}

std::span<const double> on_axes(const Study& study, std::span<const double> x, std::vector<double>& values) {
  for (std::size_t a = 0; a < values.size(); ++a) values[a] = x[at(study.mesh.axes()[a].state)];
  return values;
}

bool leaves_box(const Study& study, const Attractor& attractor) {
  std::vector<double> values(study.mesh.axes().size());
  for (std::size_t i = 0; i < attractor.count(study.states()); ++i) {
    if (study.mesh.outside(on_axes(study, attractor.point(i, study.states()), values)) > 1) return true;
  }
  return false;
}

/// The mean distance from a cell of the cycle to the nearest point of the attractor, in cells.
double distance_to(const Study& study, const CellCycle& cycle, const std::vector<CellIndex>& attractor) {
  double sum = 0;
  for (const CellIndex cell : cycle.cells) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const CellIndex other : attractor) nearest = std::min(nearest, study.mesh.distance(cell, other));
    sum += nearest;
  }
  return sum / static_cast<double>(cycle.period());
}

/// The attractor, by its place in study.found, that most runs from the cells of a cycle reach, or the sink.
std::vector<CellFate> run_cycles(Study& study, const std::vector<CellCycle>& cycles) {
  const std::size_t each = std::clamp<std::size_t>(600 / std::max<std::size_t>(1, cycles.size()), 1, 8);
  std::vector<CellIndex> cells;
  std::vector<std::size_t> owner;
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    const std::size_t taken = std::min(each, cycles[c].period());
    for (std::size_t i = 0; i < taken; ++i) {
      cells.push_back(cycles[c].cells[i * cycles[c].period() / taken]);
      owner.push_back(c);
    }
  }
  const auto outcome = settle_cells(study, "attractors", cells);
  std::vector<std::map<CellFate, int>> votes(cycles.size());
  std::vector<char> cut_short(cycles.size(), 0);  // by an interruption: it may yet come to anything
  for (std::size_t i = 0; i < outcome.size(); ++i) {
    // No cycle of cells can stand for what does not stay in the box: such a cycle is an artefact of the cells.
    const CellFate& f = outcome[i];
    if (!f.computed()) cut_short[owner[i]] = 1;
    ++votes[owner[i]][f.settles() && !leaves_box(study, study.found[f.place()]) ? f : CellFate{Kind::sink}];
  }
  std::vector<CellFate> fates;
  for (std::size_t c = 0; c < votes.size(); ++c) {
    const auto most = std::max_element(votes[c].begin(), votes[c].end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    fates.push_back(cut_short[c] ? CellFate{} : most->first);
  }
  return fates;
}

/// Moves every cycle that stays in the box to the attractor nearest to it.
void move_to_nearest(const Study& study, const std::vector<CellCycle>& cycles, std::vector<CellFate>& fates) {
  std::vector<std::vector<CellIndex>> places(study.found.size());
  std::vector<double> values(study.mesh.axes().size());
  for (std::size_t k = 0; k < places.size(); ++k) {
    const Attractor& a = study.found[k];
    for (std::size_t i = 0; i < a.count(study.states()); ++i) {
      const CellIndex cell = study.mesh.locate(on_axes(study, a.point(i, study.states()), values));
      if (cell >= 0) places[k].push_back(cell);
    }
    if (leaves_box(study, a)) places[k].clear();
  }
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    if (!fates[c].settles()) continue;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < places.size(); ++k) {
      const double d = distance_to(study, cycles[c], places[k]);
      if (!(d < least)) continue;
      least = d;
      fates[c] = CellFate::to(k);
    }
  }
}

/// Gives each cycle its attractor by the place in study.found, or the sink.
std::vector<CellFate> join_cycles(Study& study, const std::vector<CellCycle>& cycles) {
  if (study.options.join == BasinsOptions::Join::run) return run_cycles(study, cycles);
  if (study.options.join == BasinsOptions::Join::nearest) {
    std::vector<CellFate> fates = run_cycles(study, cycles);
    move_to_nearest(study, cycles, fates);
    return fates;
  }
  std::vector<std::int32_t> lowest(cycles.size());
  std::vector<CellFate> fates(cycles.size());
  std::iota(lowest.begin(), lowest.end(), 0);
  if (study.options.join == BasinsOptions::Join::touch)
    lowest = join_near(study.mesh, cycles, study.options.join_distance);
  std::vector<std::size_t> speaker(cycles.size());  // of the cycles joined: the shortest, then the largest basin
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    std::size_t& best = speaker[at(lowest[c])];
    if (lowest[c] == static_cast<std::int32_t>(c)) best = c;
    const CellCycle &a = cycles[c], &b = cycles[best];
    if (a.period() < b.period() || (a.period() == b.period() && a.basin > b.basin)) best = c;
  }
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    if (lowest[c] == static_cast<std::int32_t>(c)) {
      fates[c] = CellFate::to(study.found.size());
      study.found.push_back(cycle_attractor(study, cycles[speaker[c]]));
    } else {
      fates[c] = fates[at(lowest[c])];
    }
  }
  return fates;
}

void by_cells(Study& study, Basins& result) {
  result.images = map_cells(study);
  result.computed = result.images.size();
  if (study.interrupted) {
    // Paths that end at a cell that was not mapped do not end in the sink: all such cells are one, which stays where it
    // is.
    std::vector<CellIndex> followed = result.images;
    CellIndex unknown = not_mapped;
    for (std::size_t cell = 0; cell < followed.size(); ++cell) {
      if (followed[cell] != not_mapped) continue;
      if (unknown == not_mapped) unknown = static_cast<CellIndex>(cell);
      followed[cell] = unknown;
      --result.computed;
    }
    result.mapping = follow_cells(followed);
    result.fate_of_cycle.assign(result.mapping.cycles.size(), CellFate{});
  } else {
    result.mapping = follow_cells(result.images);
    result.fate_of_cycle = join_cycles(study, result.mapping.cycles);
  }
  result.fate.reserve(result.images.size());
  for (const std::int32_t cycle : result.mapping.cycle)
    result.fate.push_back(cycle < 0 ? CellFate{Kind::sink} : result.fate_of_cycle[at(cycle)]);
}

// ---- direct runs ---------------------------------------------------------------------------------------------------

/// The places along an axis at a distance `stride`, the last one always among them.
std::vector<std::size_t> lattice(std::size_t n, std::size_t stride) {
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < n; k += stride) places.push_back(k);
  if (places.back() != n - 1) places.push_back(n - 1);
  return places;
}

/// Calls `visit` with the places along all axes, for all combinations.
template <class Visit>
void for_all(const std::vector<std::vector<std::size_t>>& places, Visit visit) {
  std::vector<std::size_t> digit(places.size(), 0), place(places.size());
  for (;;) {
    for (std::size_t a = 0; a < places.size(); ++a) place[a] = places[a][digit[a]];
    visit(place);
    std::size_t a = 0;
    while (a < places.size() && ++digit[a] == places[a].size()) digit[a++] = 0;
    if (a == places.size()) return;
  }
}

class Refinement {
 public:
  Refinement(Study& study, Basins& result) : study_(study), result_(result) {
    result_.was_run.assign(study.mesh.cells(), 0);
    std::size_t stride = 1;
    for (const CellAxis& axis : study.mesh.axes()) {
      n_.push_back(axis.cells());
      stride_.push_back(stride);
      stride *= axis.cells();
    }
  }

  /// Cells that were computed before.
  void take(const std::vector<CellIndex>& cells, const std::vector<CellFate>& fates) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      result_.fate[at(cells[i])] = fates[i];
      result_.was_run[at(cells[i])] = fates[i].computed();
      result_.computed += fates[i].computed();
    }
  }

  void run() {
    std::size_t first = coarsest;
    while (first > 1 && first * coarse_cells > *std::max_element(n_.begin(), n_.end())) first /= 2;
    for (std::size_t stride = first; stride >= 1; stride /= 2) {
      std::vector<std::vector<std::size_t>> places;
      for (const std::size_t n : n_) places.push_back(lattice(n, stride));
      std::vector<CellIndex> wanted;
      for_all(places, [&](const std::vector<std::size_t>& place) {
        const std::size_t cell = cell_at(place);
        if (result_.fate[cell].computed()) return;
        const CellFate around = stride == first ? CellFate{} : agreed(place, 2 * stride);
        if (!around.computed()) {
          wanted.push_back(static_cast<CellIndex>(cell));
        } else {
          result_.fate[cell] = around;
        }
      });
      compute(wanted);
      if (study_.interrupted) return forget();
    }
    follow_boundaries();
    for (int round = 1; round <= most_checks && !study_.interrupted; ++round) {
      if (check(round)) return;
      follow_boundaries();
    }
    if (study_.interrupted) forget();
  }

 private:
  std::size_t cell_at(const std::vector<std::size_t>& place) const {
    std::size_t cell = 0;
    for (std::size_t a = 0; a < place.size(); ++a) cell += place[a] * stride_[a];
    return cell;
  }

  /// The fate of all corners of the block of the coarser lattice around a place; not_computed if they differ.
  CellFate agreed(const std::vector<std::size_t>& place, std::size_t block) const {
    std::vector<std::vector<std::size_t>> corners;
    for (std::size_t a = 0; a < place.size(); ++a) {
      const std::size_t low = place[a] / block * block, high = std::min(low + block, n_[a] - 1);
      const bool on_lattice = place[a] == low || place[a] == n_[a] - 1;
      corners.push_back(on_lattice ? std::vector<std::size_t>{place[a]} : std::vector<std::size_t>{low, high});
    }
    std::optional<CellFate> common;
    bool same = true;
    for_all(corners, [&](const std::vector<std::size_t>& corner) {
      const CellFate& f = result_.fate[cell_at(corner)];
      same = same && (!common || *common == f);
      common = f;
    });
    return same && common ? *common : CellFate{};
  }

  bool differs_from_a_neighbour(std::size_t cell) const {
    const CellFate& own = result_.fate[cell];
    std::vector<std::vector<std::size_t>> places(n_.size());
    std::size_t rest = cell;
    for (std::size_t a = 0; a < n_.size(); ++a, rest /= n_[a - 1]) {
      const std::size_t k = rest % n_[a];
      for (std::size_t i = k > 0 ? k - 1 : 0; i <= std::min(k + 1, n_[a] - 1); ++i) places[a].push_back(i);
    }
    bool differs = false;
    for_all(places,
            [&](const std::vector<std::size_t>& place) { differs = differs || result_.fate[cell_at(place)] != own; });
    return differs;
  }

  void compute(const std::vector<CellIndex>& cells) { take(cells, settle_cells(study_, "cells", cells)); }

  /// Runs cells that were filled in and have a neighbour unlike them, until there are none.
  void follow_boundaries() {
    while (!study_.interrupted) {
      std::vector<CellIndex> wanted;
      for (std::size_t cell = 0; cell < result_.fate.size(); ++cell) {
        if (result_.was_run[cell] == 0 && differs_from_a_neighbour(cell))
          wanted.push_back(static_cast<CellIndex>(cell));
      }
      if (wanted.empty()) return;
      compute(wanted);
    }
  }

  /// Runs some of the cells that were filled in, twice as many each time; whether all of them were right.
  bool check(int round) {
    std::vector<CellIndex> filled, chosen;
    for (std::size_t cell = 0; cell < result_.fate.size(); ++cell) {
      if (result_.was_run[cell] == 0) filled.push_back(static_cast<CellIndex>(cell));
    }
    const std::size_t count = std::max(least_checked, result_.fate.size() / 50) << (round - 1);
    for (std::size_t i = 0; i < std::min(count, filled.size()); ++i) {
      const double u = random_number(static_cast<std::uint64_t>(round), i, 0);
      const std::size_t k = i + static_cast<std::size_t>(u * static_cast<double>(filled.size() - i));
      std::swap(filled[i], filled[k]);
      chosen.push_back(filled[i]);
    }
    std::sort(chosen.begin(), chosen.end());
    std::vector<CellFate> before;
    for (const CellIndex cell : chosen) before.push_back(result_.fate[at(cell)]);
    compute(chosen);
    result_.checked = chosen.size();
    result_.wrong = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) result_.wrong += result_.fate[at(chosen[i])] != before[i];
    return result_.wrong == 0;
  }

  /// Filled-in cells are decided again: their fate is final only at the end.
  void forget() {
    for (std::size_t i = 0; i < result_.was_run.size(); ++i) {
      if (result_.was_run[i] == 0) result_.fate[i] = {};
    }
  }

  Study& study_;
  Basins& result_;
  std::vector<std::size_t> n_, stride_;
};

void by_runs(Study& study, Basins& result) {
  const std::size_t cells = study.mesh.cells();
  result.fate.assign(cells, {});
  std::vector<CellIndex> first;
  std::vector<CellFate> fates;
  if (cells > 4 * first_runs) {
    first = spread_cells(study.mesh, first_runs);
    fates = settle_cells(study, "attractors", first);
    study.known = study.found;
  }
  if (study.options.refine) {
    Refinement refinement(study, result);
    refinement.take(first, fates);
    if (!study.interrupted) refinement.run();
    return;
  }
  std::vector<CellIndex> all(cells);
  std::iota(all.begin(), all.end(), 0);
  result.fate = settle_cells(study, "cells", all);
  for (std::size_t i = 0; i < first.size(); ++i) {  // where it was interrupted
    if (CellFate& f = result.fate[at(first[i])]; !f.computed()) f = fates[i];
  }
  for (const CellFate& f : result.fate) result.computed += f.computed();
}

/// Basins in their final order; attractors that no cell goes to are left out.
void order_basins(Study& study, Basins& result) {
  struct Place {
    std::size_t cells = 0, first = 0;
  };
  std::vector<Place> places(study.found.size());
  for (std::size_t i = 0; i < result.fate.size(); ++i) {
    if (!result.fate[i].settles()) continue;
    Place& place = places[result.fate[i].place()];
    if (place.cells++ == 0) place.first = i;
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].cells > 0) order.push_back(i);
  }
  const auto period = [&](std::size_t i) {
    return study.found[i].period > 0 ? study.found[i].period : std::numeric_limits<int>::max();
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return period(a) != period(b) ? period(a) < period(b) : places[a].first < places[b].first;
  });
  std::vector<CellFate> final_fate(places.size(), CellFate{Kind::sink});
  for (std::size_t i = 0; i < order.size(); ++i) {
    final_fate[order[i]] = CellFate::to(i);
    result.basins.push_back({.attractor = std::move(study.found[order[i]]), .cells = places[order[i]].cells});
  }
  for (CellFate& f : result.fate) f = f.settles() ? final_fate[f.place()] : f;
  for (std::size_t c = 0; c < result.fate_of_cycle.size(); ++c) {
    CellFate& f = result.fate_of_cycle[c];
    if (!f.settles()) continue;
    f = final_fate[f.place()];
    if (f.settles()) result.basins[f.place()].cycles.push_back(static_cast<std::int32_t>(c));
  }
}

}  // namespace

std::string_view fate_name(const CellFate& fate) {
  switch (fate.kind) {
    case Kind::attractor: return "attractor";
    case Kind::sink: return "leaves the box";
    case Kind::no_start: return "no start";
    case Kind::no_return: return "no return";
    case Kind::unsettled: return "unsettled";
    case Kind::not_computed: return "not computed";
    case Kind::ended: return why_name(fate.why);
  }
  return "";
}

bool start_state(const SectionMap& map, const Mesh& mesh, std::span<const double> values, std::span<double> state) {
  for (std::size_t a = 0; a < mesh.axes().size(); ++a) state[at(mesh.axes()[a].state)] = values[a];
  for (const DependentState& d : map.dependent) {
    state[at(d.state)] = evaluate(d.value, [&](const Symbol& s) {
      return s.kind == SymbolKind::state ? state[at(s.index)] : map.run.parameters[at(s.index)];
    });
    if (!std::isfinite(state[at(d.state)])) return false;
  }
  return true;
}

Basins find_basins(const SectionMap& map, const Mesh& mesh, const BasinsOptions& options) {
  Study study{.map = map, .mesh = mesh, .options = options};
  study.tolerance = choose_tolerance(map, mesh, options, study.interrupted);
  Basins result;
  if (options.method == BasinsOptions::Method::cells) {
    by_cells(study, result);
  } else {
    by_runs(study, result);
  }
  order_basins(study, result);
  result.tolerance = std::move(study.tolerance);
  result.interrupted = study.interrupted;
  return result;
}

}  // namespace saltus
