// The work of lower(): walks the written formulas once and collects switches, counters and gaps on the way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "expr/diff.hpp"
#include "expr/expr.hpp"
#include "model/balances.hpp"
#include "model/interactions.hpp"
#include "model/linear_form.hpp"
#include "model/model.hpp"

namespace saltus {

class Lowering {
 public:
  explicit Lowering(Model& model);

  /// Fills the model's form but for what is found out about it afterwards.
  void run();
  /// Pairs of switches that cannot both be at zero (the two ends of one saturation).
  const SwitchPairs& disjoint() const { return disjoint_; }

 private:
  [[noreturn]] void fail(std::string message, std::string hint) const;

  // ---- parts of the model (lower.cpp)
  void lower_equations();
  void solve_rates();

  // ---- multipliers that stand in no equation (lower_virtual_power.cpp)
  bool stands_in_equations(const Expr& multiplier) const;
  void add_virtual_force(size_t j, std::vector<VirtualForce>& forces);
  void add_friction(size_t j, VirtualForce& force);
  void set_rebound(const Expr& sigma, const Expr& rebound);
  std::vector<Partial> by_speed(const Expr& e) const;
  // ---- parts of the model, continued (lower.cpp)

  void lower_constraints();
  void lower_jumps();
  void lower_sections();
  void put_hidden_last();
  void check_vectors();
  void forget();
  void renumber(const std::vector<int>& new_of);

  // ---- names and what they stand for (lower_names.cpp)
  Expr formula(const Expr& written, const Place& place);
  const Expr& lower_definition(size_t i);
  Expr expand(const Expr& e);
  Expr expand_definition(size_t i);
  Expr plain(const Expr& written);
  void find_constants();
  bool constant(const Expr& e) const;
  double start_value(const Expr& e);

  // ---- switches on surfaces (lower_surfaces.cpp)
  static Expr count_symbol(const Counter& c) { return Expr::symbol(SymbolKind::counter, c.at, c.name); }
  struct SurfaceUse {
    Expr written;                ///< the surface as written, for its name
    Expr lowered;                ///< the same with inner switches lowered
    std::optional<Expr> hold{};  ///< the ratio of sign(v, s)
    bool fixes_ratio = false;    ///< sign, step, if, min, max: the values at the surface matter
    bool selects = false;
    std::string_view inside{};  ///< the function, where a holding surface is a mistake
    int at_zero = 0;            ///< what sigma is where the surface stays zero, if `rank` says that it matters
    int rank = 0;               ///< of several uses of one surface the highest decides
    bool kink = false;          ///< what it enters is continuous across the surface
    bool hidden = false;
  };
  Expr sigma(const SurfaceUse& use);
  std::optional<Expr> side_of_joint_force(const SurfaceUse& use, const LinearForm& shape);
  static SurfaceUse with_surface(SurfaceUse use, const Expr& surface) {
    use.lowered = surface;
    return use;
  }
  std::optional<Expr> sigma_at_poles(const SurfaceUse& use, const Expr& surface);
  static Expr without_odd_power(Expr surface);
  Switch& add_switch(Switch s, const LinearForm& shape);
  bool changes_at_events_only(const Expr& surface) const;
  Expr value_of_use(int i, const SurfaceUse& use, int side);
  void note_use(Switch& s, const SurfaceUse& use, int side);
  int add_step(std::string name, const Expr& surface, bool kink);
  const Counter& counter_of(const Expr& written, const Expr& phase, const std::shared_ptr<const Interpolant>& curve);

  // ---- each nonsmooth function (lower_functions.cpp)
  Expr lower_node(const Expr& e, std::span<const Expr> a);
  std::optional<Expr> lower_of_switches(const Expr& e, std::span<const Expr> a);
  Expr lower_comparison(const Expr& written, const Expr& more, const Expr& less);
  Expr lower_unit(const Expr& e, std::span<const Expr> a);
  Expr lower_hold(const Expr& e, std::span<const Expr> a);
  Expr lower_extreme(const Expr& e, std::span<const Expr> a);
  Expr lower_saturation(const Expr& e, std::span<const Expr> a);
  Expr lower_select(std::span<const Expr> a);
  Expr lower_mod(const Expr& written, std::span<const Expr> a);
  Expr lower_floor(const Expr& written, const Expr& argument);
  Expr lower_table(const Expr& written, const Expr& argument);

  Model& model_;
  Form& form_;
  std::vector<double> parameters_;
  Rebuild rebuild_;
  std::optional<Rebuild> expanded_;
  const Place* place_ = nullptr;  // of the formula at hand
  std::vector<Expr> balances_;    ///< left side less right side, lowered
  std::vector<std::optional<Expr>> lowered_;
  std::vector<bool> constant_definition_;
  std::unordered_map<size_t, Expr> definition_values_;
  ExprMap<Expr> plain_;           // names with their formulas as written
  ExprMap<Expr> plain_formulas_;  // what `plain` has given: the jumps of many indices set the same
  std::unordered_map<size_t, std::vector<int>> by_shape_;
  std::vector<LinearForm> shapes_;
  std::vector<bool> ratio_fixed_;
  std::vector<std::string> selected_in_;
  std::vector<int> rank_;    // of the use that says what a switch is on its surface
  std::vector<Expr> mixed_;  // surfaces whose uses mean different things where they rest (n > 1 and n < 1)
  bool anew_ = false;        // one more has been found
  bool hiding_ = false;      // kinks of what only observes or triggers are no switches of the model
  SwitchPairs disjoint_;
};

}  // namespace saltus
