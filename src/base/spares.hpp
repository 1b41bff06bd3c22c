// Working memory of those who come and go, kept for the next one: by type, each thing with one user at a time.
//
// A thing must give the same results whatever it was used for before; who was interrupted by an exception lets his go.
// Safe to use from any thread.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <typeindex>
#include <vector>

namespace saltus {

class Spares {
 public:
  Spares() { things_.reserve(most); }  // giving back never asks for memory: there may be none
  /// One that was given back, the last one first; null if there is none.
  template <class T>
  std::unique_ptr<T> take() {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(things_.rbegin(), things_.rend(), [](const Thing& t) { return t.type == typeid(T); });
    if (found == things_.rend()) return nullptr;
    std::unique_ptr<T> out(static_cast<T*>(found->memory.release()));
    things_.erase(std::next(found).base());
    return out;
  }
  /// Where enough are kept it is let go.
  template <class T>
  void give(std::unique_ptr<T> thing) {
    const std::lock_guard lock(mutex_);
    if (things_.size() >= most) return;
    things_.push_back({typeid(T), {thing.release(), [](void* memory) { delete static_cast<T*>(memory); }}});
  }

 private:
  static constexpr size_t most = 16;
  struct Thing {
    std::type_index type;
    std::unique_ptr<void, void (*)(void*)> memory;
  };
  std::mutex mutex_;
  std::vector<Thing> things_;
};

}  // namespace saltus
