// saltus for C++: models, questions, answers. The headers need the standard library alone.
//
//     System        a model to ask about: from a file, from text, from the gallery, or built by calls (ModelBuilder)
//     ask           RunQuestion -> RunAnswer, SectionQuestion -> SectionAnswer, SweepQuestion -> SweepAnswer,
//                   BasinsQuestion -> BasinsAnswer, ExponentsQuestion -> Exponents, OrbitQuestion -> OrbitAnswer,
//                   EquilibriumQuestion -> EquilibriumAnswer, FollowQuestion -> FollowAnswer,
//                   PhaseQuestion -> PhaseAnswer, ResponseQuestion -> ResponseAnswer,
//                   FitQuestion -> FitAnswer
//     rates         of the states, at many points
//     Observer      who watches: progress, pieces, events, points of branches, a stop token
//     Error         wrong input: what, where, and what to do; the fate of a run is a value instead (Trajectory::end)
#pragma once

#include "ask/exponents.hpp"
#include "ask/fit.hpp"
#include "ask/follow.hpp"
#include "ask/gallery.hpp"
#include "ask/many.hpp"
#include "ask/orbit.hpp"
#include "ask/phase.hpp"
#include "ask/rates.hpp"
#include "ask/response.hpp"
#include "ask/run.hpp"
#include "ask/section.hpp"
#include "base/error.hpp"
#include "model/model_builder.hpp"
