// Formulas as values: an Expr is an immutable, shared, hash-consed node, so equal formulas are the same node.
//
// Everything that walks an Expr does so without recursion: 10 000 nested operations are ordinary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace saltus {

class Interpolant;

enum class Op : uint8_t {
  number,
  symbol,
  add,
  sub,
  mul,
  div,
  pow,
  neg,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  atan2,
  sinh,
  cosh,
  tanh,
  exp,
  log,
  sqrt,
  cbrt,
  hypot,
  log10,
  log2,
  expm1,
  log1p,
  sign,
  hold_sign,
  unit,        // unit(a, others, bound): a over the length of all, where the others are one or `components` of two
  components,  // of two; their length as a number
  abs,
  min,
  max,
  sat,
  step,
  select,
  mod,
  floor,
  table,  // of an argument and a symbol of kind table; up to here nonsmooth, lowered by model/lower
  less,
  greater,
  less_equal,
  greater_equal,
  both,
  either,
  negation,  // truth values
};

/// The kind of quantity that a name stands for.
enum class SymbolKind : uint8_t {
  state,       ///< x
  parameter,   ///< p
  time,        ///< t
  sigma,       ///< the value of a switch
  lambda,      ///< the multiplier of a constraint
  counter,     ///< what a floor has counted, or what is looked up in a table
  definition,  ///< a name given to a formula
  constant,    ///< pi, e
  argument,    ///< of a user's function, in its body only
  table,       ///< a function given by points
  rate,        ///< the derivative of a state (of its index) as an unknown of the equations: x''
};

struct Symbol {
  SymbolKind kind = SymbolKind::state;
  int index = 0;  ///< position among its kind; of a table, which derivative of it is meant
  std::string name;
  std::shared_ptr<const Interpolant> curve{};  ///< of a table
  bool may_be_zero = false;                    ///< of a switch: its square is not 1 everywhere
};

struct Node;

class Expr {
 public:
  Expr();              ///< zero
  Expr(double value);  // NOLINT: numbers are formulas
  Expr(const Expr& other);
  Expr(Expr&& other) noexcept;
  Expr& operator=(Expr other) noexcept;
  ~Expr();

  /// The node as it is written, nothing folded (except the minus sign of a number).
  static Expr raw(Op op, std::span<const Expr> arguments);
  static Expr symbol(SymbolKind kind, int index, std::string_view name, bool may_be_zero = false);
  static Expr table(std::shared_ptr<const Interpolant> curve, std::string_view name, int derivative = 0);

  Op op() const;
  double value() const;          ///< of a number
  const Symbol& symbol() const;  ///< of a symbol
  size_t size() const;           ///< number of arguments
  Expr argument(size_t i) const;

  bool is_number() const { return op() == Op::number; }
  bool is_number(double v) const { return is_number() && value() == v; }
  bool is_symbol() const { return op() == Op::symbol; }
  bool is_symbol(SymbolKind kind) const { return is_symbol() && symbol().kind == kind; }
  bool is_truth() const { return op() >= Op::less; }  ///< a comparison or a combination of them

  const Node* node() const { return node_; }
  friend bool operator==(const Expr& a, const Expr& b) { return a.node_ == b.node_; }

 private:
  struct Counted {};  // the use has been counted already
  Expr(Counted, const Node* node) : node_(node) {}
  const Node* node_;
  friend class Pool;
};

struct ExprHash {
  size_t operator()(const Expr& e) const { return std::hash<const void*>{}(e.node()); }
};
template <class T>
using ExprMap = std::unordered_map<Expr, T, ExprHash>;

/// The constants of the language.
Expr pi();
Expr euler();
Expr time_symbol();

// Arithmetic with identities folded (x+0, x*1, x*0, constants, sigma*sigma); values on the domain stay the same.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr pow(const Expr& a, const Expr& b);
/// Any operation, folded as above.
Expr make(Op op, std::span<const Expr> arguments);
Expr make(Op op, const Expr& a);
Expr make(Op op, const Expr& a, const Expr& b);
Expr make(Op op, const Expr& a, const Expr& b, const Expr& c);

/// All nodes below the roots, arguments before users, each once.
std::vector<Expr> postorder(std::span<const Expr> roots);

/// Rebuilds formulas from the leaves up; remembers what it has done, so shared parts are done once.
class Rebuild {
 public:
  /// `change(node, arguments)` gives the new node for one whose arguments have been rebuilt.
  using Change = std::function<Expr(const Expr& node, std::span<const Expr> arguments)>;
  explicit Rebuild(Change change) : change_(std::move(change)) {}
  Expr operator()(const Expr& root);

 private:
  Change change_;
  ExprMap<Expr> done_;
};

/// Constants folded and identities applied everywhere.
Expr simplify(const Expr& e);

/// Symbols replaced by formulas, and the result simplified.
Expr substitute(const Expr& e, const ExprMap<Expr>& values);
/// Symbols replaced by formulas, nothing folded: what the result would be if it had been written so.
Expr insert(const Expr& e, const ExprMap<Expr>& values);

/// All symbols in the formulas, in order of first appearance.
std::vector<Expr> symbols_in(std::span<const Expr> roots);
bool depends_on(const Expr& e, const Expr& symbol);
bool contains_kind(const Expr& e, SymbolKind kind);
/// z of 1 + exp(z): quotients by it are products with a logistic function, which has a value where exp(z) overflows.
std::optional<Expr> exponent_in_one_plus_exp(const Expr& e);

/// The value of a formula; `lookup` gives the values of symbols other than constants.
double evaluate(const Expr& e, const std::function<double(const Symbol&)>& lookup);
/// One operation on numbers; truth values are 0 and 1.
double apply(Op op, const double* a);
/// Applies the operation of a node, which may be a table, to its arguments.
double apply(const Expr& node, const double* a);

/// Name of an operation as written in formulas ("sin", "+", "and").
std::string_view op_name(Op op);
/// Arguments it takes.
int op_arity(Op op);

}  // namespace saltus
