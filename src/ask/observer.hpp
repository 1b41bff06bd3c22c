// Who watches a question being answered: apart from what is asked, because it changes no answer.
#pragma once

#include <functional>
#include <stop_token>

#include "base/observer.hpp"
#include "flow/trajectory.hpp"

namespace saltus {

struct Observer {
  Report progress = {};       ///< called now and then in the calling thread; false stops with what there is
  std::stop_token stop = {};  ///< likewise, from any thread
  std::function<void(const Piece&, const Arc&)> on_piece = {};  ///< of a run: each finished piece
  std::function<void(const Event&, const Arc&)> on_event = {};  ///< of a run: each event, and what is constant after it
  std::function<void(const Transition&)> on_transition = {};    ///< of a run: all that happened there

  /// Whether to go on; tells how far it is.
  bool operator()(const Progress& now) const { return !stop.stop_requested() && (!progress || progress(now)); }
};

}  // namespace saltus
