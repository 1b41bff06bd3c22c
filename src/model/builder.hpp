// The work of build_model(): names first, then formulas with names resolved.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "expr/parse.hpp"
#include "model/build.hpp"
#include "model/equation_lines.hpp"
#include "model/model.hpp"
#include "model/name_registry.hpp"

namespace saltus {

class Builder {
 public:
  explicit Builder(const ModelText& text) : text_(text) {}
  Model run();

 private:
  /// One line of the equations for one index.
  struct Equation {
    size_t line = 0;
    std::array<long, 2> index{};  ///< of the line's range
  };
  /// The indices that occur with a name, for which there must be no gap.
  struct Family {
    EquationLine::Kind kind = EquationLine::name;
    const Fragment* given = nullptr;
    Names::Range range{};
    long count = 0;
    void widen(const std::array<long, 2>& index);
  };

  // ---- parameters, and what is said about names (build.cpp)
  void read_lines();
  void add_tables();
  void parse_parameters();
  void parse_run();
  void read_labels();
  void find_structural();
  void find_unused();

  // ---- which names there are (build_names.cpp)
  void collect_names();
  void collect_line(size_t number);
  void collect_range(size_t number);
  void add_member(const IndexedName& name, size_t number, const std::array<long, 2>& index);
  void find_coordinates();
  void collect_balances(size_t number);
  void collect_unknowns(const Fragment& side, const Indices& indices, std::span<const Fragment> places);
  void collect_mechanics();
  void name_energies();
  void open_names();
  std::vector<Fragment> mechanics_formulas() const;
  void add_unknown(const std::string& name, bool coordinate, std::span<const Fragment> sides);
  void add_state(const std::string& name, bool coordinate, const Fragment& given);
  void sort_equations();
  void check_balances();
  bool is_coordinate(const std::string& name) const { return coordinates_.contains(name.substr(0, name.find('['))); }
  void check_family(const std::string& stem, const Family& family);
  [[noreturn]] void fail_too_many(size_t number) const;
  void add_equation(const std::string& name, size_t number, const std::array<long, 2>& index);
  void add_rate(const std::string& name, size_t number, const std::array<long, 2>& index);
  static std::array<long, 2> values_of(const Indices& indices);
  void collect_constraint(const ConstraintText& c);

  // ---- equations and functions (build_equations.cpp)
  void parse_functions(Names& all);
  void parse_function(const EquationLine& line, Names& all);
  void parse_equations();
  void order_definitions();
  [[noreturn]] void report_circle(const std::vector<int>& circle) const;
  Expr constant(const Fragment& text, const Indices& indices = {});
  Expr formula(const Fragment& text, const Indices& indices);
  Expr without_multiplier(const Expr& e, const Fragment& text);

  // ---- equations of motion of a Lagrangian (build_mechanics.cpp)
  void parse_mechanics();
  Expr written_out(Expr e) const;
  Expr energy_formula(const Fragment& text, std::string_view what);
  void parse_forces();
  Expr force_on(int coordinate, const Expr& dissipation) const;
  Balance lagrange_equation(int coordinate, const Expr& momentum, const Expr& lagrangian,
                            const Expr& dissipation) const;

  // ---- initial values (build_initial.cpp)
  void parse_initial();
  /// With a state goes the index for the formula beside it.
  using ForState = std::function<void(size_t state, const Indices& indices)>;
  void for_each_state(const Fragment& key, const Indices& indices, bool single, std::string_view what,
                      const ForState& action) const;
  long index_of(const Fragment& part, const Indices& indices) const;
  size_t state_of(const Fragment& given, const std::string& name, std::string_view what) const;

  // ---- constraints, jumps, sections (build_events.cpp)
  void parse_constraints();
  void parse_friction(Constraint& constraint, const ConstraintText& c, const Indices& indices);
  void parse_jumps();
  void parse_jump(const JumpText& j, const Indices& indices);
  void parse_sections();
  void parse_on(Section& section, const Fragment& on, const Indices& indices);
  Expr crossed_formula(const Fragment& on, const Indices& indices, std::string_view conditions);
  void claim_event(NameRegistry& registry, const Fragment& name, std::string_view role);
  Expr positive_time(const Fragment& every, std::string_view of, const Indices& indices);
  Expr finite_time(const Fragment& text, const Indices& indices = {});

  static std::string indexed_text(const std::string& stem, const Indices& indices);
  /// Once without an index, or once for each of a range.
  template <class Do>
  void for_each_index(const std::optional<Fragment>& text, Do action) {
    if (!text) return action(Indices{});
    saltus::for_each_index(*text, names_, {}, action);
  }

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // slow builds that look for other things
  static constexpr size_t most_equations = 10'000;
#else
  static constexpr size_t most_equations = 1'000'000;  // some 2 GB
#endif
  static constexpr std::string_view only_parameters_hint =
      "numbers, parameters and names that depend on parameters only can be used here";
  static constexpr std::string_view no_multiplier_hint = "a multiplier acts in rates and gaps only";

  const ModelText& text_;
  Model model_;
  std::vector<NamedText> parameters_;  ///< those of arrays last; entries know no place of their names
  std::vector<EquationLine> lines_;
  std::vector<Equation> equations_;                 ///< one per entry of model_.order
  std::vector<size_t> functions_;                   ///< their lines
  std::set<std::string, std::less<>> coordinates_;  ///< names (without index) that stand somewhere with two primes
  std::vector<const Fragment*> given_;              ///< per state: where its name stands first
  std::vector<bool> has_rate_;                      ///< per state: a line of its own gives its rate
  std::deque<Fragment> places_;                     ///< of names in balances
  bool primes_in_formulas_ = false;
  Names anything_;  ///< to see which names are in a formula, before they are known
  std::unordered_map<std::string, Family> families_;
  NameRegistry registry_, jumps_, sections_;
  Names names_, tables_, parameters_only_, without_multipliers_;
  std::unordered_map<std::string, int> states_, constraints_, jump_index_;
  std::vector<double> parameter_values_;
  ExprMap<Expr> constants_;  ///< names that depend on parameters only, with their formulas
  std::vector<Expr> used_;   ///< formulas whose names count as used
  std::map<std::pair<std::string, std::vector<long>>, Expr> formulas_;  ///< by text and values of the indices in it
};

}  // namespace saltus
