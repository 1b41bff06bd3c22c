// From a special point on, for branches of all kinds: found again on its branch, the other direction at a branch point,
// its own curve in two parameters.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/continuation.hpp"
#include "analysis/kept_test.hpp"

namespace saltus {

/// Walks from a point of a branch towards a value of its parameter, then the other way; whether one walk has found what
/// it looked for, as `finds` says.
bool seek_both_ways(const CurvePoint& first, double value, const std::function<bool(const CurvePoint& from)>& finds);

/// The direction other than the tangent in which F(z) = 0 can be followed at a branch point, in units
/// of the scale.
std::optional<Vec> other_direction(const Followed& followed, const Located& l);

/// Rows of length 1; rows of zeros stay.
Mat unit_rows(Mat A);

/// The problem of a special point followed in two parameters: `branch` with the equations of the point, tests of
/// its own, and an end where another guard is zero. `add` notes a special point of a type; false: enough.
Followed special_curve(Followed branch, KeptTest equations, std::function<std::vector<Test>(const CurvePoint&)> tests,
                       std::function<bool(const std::string& type, const Located&)> add);

/// Along a fold the parameters move across the direction that removes the solutions; at a cusp they turn.
/// `by_parameter`: F by the two parameters, `left`: the left null vector, `moved`: how the parameters move.
Test cusp_test(const Mat& by_parameter, const Vec& left, const Vec& moved);

}  // namespace saltus
