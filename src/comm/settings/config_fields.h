// The integers of ncclConfig_t as a table: what each is called, what it may be, and whether anything heeds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "nccl.h"

namespace tutti::comm {

/// One integer of ncclConfig_t.
struct ConfigField {
  static constexpr int kUnbounded = 0x7fffffff;
  static constexpr int kUndefined = NCCL_CONFIG_UNDEF_INT;

  const char* title;  ///< for "Comm config <title> set to …"
  const char* name;   ///< as the struct has it
  int ncclConfig_t::*member;
  unsigned since;  ///< NCCL_VERSION_CODE of the first header with it; 0: its presence follows from the size
  int lowest;
  int highest;   ///< kUnbounded: none
  int fallback;  ///< what counts where nobody says anything
  /// Why it has no effect yet; null: it has one. Who makes something heed a field removes this.
  const char* without = nullptr;
};

/// Those of the newest struct, in its order.
std::span<const ConfigField> configFields();

/// An INFO line for each field that `given` sets and nothing heeds yet, once for as long as `said` lives: one bit for
/// each field. Any thread.
void sayWithoutEffect(const ncclConfig_t& given, std::atomic<std::uint32_t>& said);

}  // namespace tutti::comm
