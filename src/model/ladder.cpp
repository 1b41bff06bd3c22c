#include "model/ladder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "model/derive.hpp"
#include "model/linear_form.hpp"

namespace saltus {
namespace {

constexpr int highest_degree = 4;
constexpr double cancelled = 1e-13;  // of what is subtracted: rounding of a few products

/// The factors of sigma in a residual, and the rest without them.
struct AffineRow {
  Expr rest;
  std::map<int, Expr> slope;
};

/// The affine row of a residual; nothing if it is not affine in all sigma together, or has multipliers.
std::optional<AffineRow> affine_row(const Expr& residual) {
  if (contains_kind(residual, SymbolKind::lambda)) return std::nullopt;
  AffineRow row;
  ExprMap<Expr> none;
  for (const Partial& d : gradient(residual, SymbolKind::sigma)) {
    if (has_unknowns(d.value)) return std::nullopt;
    row.slope.emplace(d.symbol.symbol().index, d.value);
    none.emplace(d.symbol, 0.0);
  }
  row.rest = substitute(residual, none);
  return row;
}

/// a - factor b. Where factors are numbers, what cancels but for their rounding is not left behind: a state that is not
/// there any more must not seem to be moved.
Expr combined(const Expr& a, const Expr& factor, const Expr& b) {
  const std::optional<double> number = literal(factor);
  if (!number) return a - factor * b;
  const LinearForm left = linear_form(a), right = linear_form(b);
  const auto difference = [&](double own, double other) {
    const double left_over = own - *number * other;
    return std::abs(left_over) > cancelled * (std::abs(own) + std::abs(*number * other)) ? left_over : 0.0;
  };
  ExprMap<std::pair<double, double>> terms;
  std::vector<Expr> atoms;
  for (const LinearForm* form : {&left, &right}) {
    for (const auto& [atom, coefficient] : form->terms) {
      const auto [entry, added] = terms.try_emplace(atom, 0.0, 0.0);
      if (added) atoms.push_back(atom);
      (form == &left ? entry->second.first : entry->second.second) = coefficient;
    }
  }
  Expr sum = difference(left.constant, right.constant);
  for (const Expr& atom : atoms) {
    const auto [own, other] = terms.at(atom);
    if (const double coefficient = difference(own, other); coefficient != 0) sum = sum + Expr(coefficient) * atom;
  }
  return sum;
}

void subtract(AffineRow& row, const Expr& factor, const AffineRow& other) {
  row.rest = combined(row.rest, factor, other.rest);
  for (const auto& [sigma, slope] : other.slope) {
    Expr& own = row.slope.try_emplace(sigma, 0.0).first->second;
    own = combined(own, factor, slope);
    if (own.is_number(0)) row.slope.erase(sigma);
  }
}

/// The sigma that a row is solved for: its own, or one whose factor is a number.
int pivot_of(const AffineRow& row, int own) {
  if (row.slope.contains(own)) return own;
  const auto number =
      std::find_if(row.slope.begin(), row.slope.end(), [](const auto& entry) { return entry.second.is_number(); });
  return number != row.slope.end() ? number->first : row.slope.begin()->first;
}

/// One residual from which all sigma can be eliminated with the others, and what is then left of it.
struct Remainder {
  int row = 0;
  Expr rest;
};

/// False where residuals are not affine.
bool eliminate(const std::vector<Ladder>& ladders, const std::vector<int>& slid, std::optional<Remainder>& left) {
  left.reset();
  std::vector<std::pair<int, AffineRow>> solved;  // sigma, row
  for (const int i : slid) {
    std::optional<AffineRow> row = affine_row(ladders[at(i)].residual);
    if (!row) return false;
    for (const auto& [sigma, other] : solved) {
      const auto entry = row->slope.find(sigma);
      if (entry == row->slope.end()) continue;
      const Expr factor = entry->second / other.slope.at(sigma);
      row->slope.erase(entry);
      AffineRow without = other;
      without.slope.erase(sigma);
      subtract(*row, factor, without);
    }
    if (row->slope.empty()) {
      left = Remainder{i, row->rest};
      return true;
    }
    const int sigma = pivot_of(*row, i);
    solved.emplace_back(sigma, std::move(*row));
  }
  return true;
}

}  // namespace

bool has_unknowns(const Expr& e) { return contains_kind(e, SymbolKind::sigma) || contains_kind(e, SymbolKind::lambda); }

Ladder climb_gap(const Expr& y, const Form& form, int degree) {
  Ladder ladder{.residual = y, .degree = degree};
  for (int k = 0; k < degree; ++k) {
    ladder.rungs.push_back(ladder.residual);
    ladder.residual = lie_derivative(ladder.residual, form);
  }
  return ladder;
}

Expr restrict_to(const Expr& y, const Expr& formula) {
  for (const Partial& d : gradient(y, SymbolKind::state)) {
    if (contains_kind(d.value, SymbolKind::state) || contains_kind(d.value, SymbolKind::time) || has_unknowns(d.value))
      continue;
    if (!depends_on(formula, d.symbol)) return formula;
    ExprMap<Expr> without, solved;
    without.emplace(d.symbol, 0.0);
    solved.emplace(d.symbol, -substitute(y, without) / d.value);
    return substitute(formula, solved);
  }
  return formula;
}

Ladder climb_surface(const Expr& y, const Form& form) {
  Ladder ladder;
  Expr next = y;
  for (int degree = 1; degree <= highest_degree; ++degree) {
    ladder.rungs.push_back(next);
    next = lie_derivative(next, form);
    if (has_unknowns(next)) {
      if (const Expr restricted = restrict_to(y, next); !has_unknowns(restricted)) {
        next = restricted;
        if (next.is_number()) break;
        continue;
      }
      ladder.residual = next;
      ladder.degree = degree;
      return ladder;
    }
    if (next.is_number()) break;
  }
  ladder.rungs.resize(1);  // no unknown enters: only the surface itself can be kept
  return ladder;
}

void raise_together(std::vector<Ladder>& ladders, const std::vector<int>& slid, const Form& form) {
  std::vector<int> rows;  // those with their own sigma first: they keep it
  for (const bool own : {true, false}) {
    for (const int i : slid) {
      if (ladders[at(i)].degree < 1) return;
      const auto sigma = gradient(ladders[at(i)].residual, SymbolKind::sigma);
      const bool has_own =
          std::any_of(sigma.begin(), sigma.end(), [i](const Partial& d) { return d.symbol.symbol().index == i; });
      if (has_own == own) rows.push_back(i);
    }
  }
  std::vector<Ladder> raised = ladders;
  std::optional<Remainder> left;
  while (eliminate(raised, rows, left)) {
    if (!left) {
      ladders = std::move(raised);
      return;
    }
    Ladder& ladder = raised[at(left->row)];
    if (left->rest.is_number() || ladder.degree == highest_degree) return;  // redundant, or never given
    ladder.rungs.push_back(left->rest);
    ladder.residual = lie_derivative(left->rest, form);
    ++ladder.degree;
  }
}

}  // namespace saltus
