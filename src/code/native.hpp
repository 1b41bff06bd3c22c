// The choice between machine code and the interpreter of tapes; no result depends on it (docs/method/native.md).
#pragma once

#include <cstdint>

namespace saltus {

/// Use of machine code: where it pays and the compiler is there, as soon as possible, never.
enum class Native : uint8_t { automatic, on, off };

/// True if the compiler is there (libsaltus_native.so); loads it.
bool native_available();
/// Throws Error(usage) if `native` is on and the compiler is missing.
void check_native(Native native);

}  // namespace saltus
