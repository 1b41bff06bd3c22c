// The dense output of a step, and where it meets sections.
#pragma once

#include <vector>

#include "flow/recorder.hpp"
#include "flow/step/judge.hpp"

namespace saltus {

/// A Simpson step is the cubic through both ends and rates, others are straight lines.
void make_piece(const Here& here, const Step& step, double end, Piece& piece);

/// States at a share of a step, along the same.
Vec states_along(const Here& here, const Step& step, double share);

/// Where the functions of `on` sections change their sign along the piece of a step.
/// `soon`: outputs of tests just after the end, where a jump is located there: a section that is met by then is met at
/// the end.
void find_crossings(StepSolver& solver, const Model& model, const Recorder& recorder, const Here& here,
                    const Step& step, const Piece& piece, std::vector<Crossing>& crossings, const Vec* soon = nullptr);

}  // namespace saltus
