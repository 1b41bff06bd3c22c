// When steps are implicit: always, or where Taylor steps were short for stability alone, until the next event.
#pragma once

namespace saltus {

class Turning {
 public:
  /// A run; `may`: steps turn by themselves.
  void begin_run(bool always, bool may);

  bool always() const { return always_; }
  bool may() const { return may_; }
  bool implicit() const { return always_ || now_; }

  /// A Taylor step has been made, as long as its series carried; `idle`: the states hardly bent on it. Whether the flow
  /// turns stiff with it: after many such steps in a row, or a few where it has been stiff before. Steps that become
  /// longer and longer, or shorter and shorter, do not count: they leave a singular place (a root next to its zero), or
  /// come to one.
  bool note_taylor(bool idle, double length);
  /// The flow turns stiff at once, if it may.
  bool turn();
  /// An implicit step is made. Every now and then Taylor series are asked again whether the flow is still stiff.
  void note_implicit();
  void note_event();
  /// An implicit step has failed: Taylor series go on instead, for a while.
  void note_failure();

 private:
  bool always_ = false, may_ = false;
  bool now_ = false, was_ = false;  // in this stretch; ever in this run
  int idle_row_ = 0;                // idle steps in a row
  double last_ = 0;                 // length of the last one
  int trend_ = 0;                   // steps in a row that were longer than the last one, or, negative, shorter
  int implicit_row_ = 0;            // implicit ones
};

}  // namespace saltus
