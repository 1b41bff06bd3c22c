// One contact alone: every solution of its 2x2 or 3x3 friction problem in closed form.
#pragma once

#include <vector>

#include "base/linear.hpp"

namespace saltus {

/// All r with u = W r + q obeying Signorini and Coulomb; q.size() is 2 or 3. For positive definite W there is at least
/// one.
///   open: r = 0;  stick: r = -W^-1 q inside the cone;  slip: u_n = 0, r_t = -mu r_n u_t/|u_t|,
///   in 3D u_t = -k r_t with k > 0 a root of a quartic.
std::vector<Vec> local_contact_solutions(const Mat& W, const Vec& q, double mu);

}  // namespace saltus
