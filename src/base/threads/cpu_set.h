// Sets of processors as text: lists ("0-3,8") and the hexadecimal words of /sys.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>

namespace tutti {

/// "0-3,8" as people write it. Empty where it is anything else, or names a processor that a cpu_set_t cannot.
std::optional<cpu_set_t> parseCpuList(std::string_view text);
/// "ffff,00000000": comma separated 32-bit hexadecimal words, most significant first. Empty as above.
std::optional<cpu_set_t> parseCpuWords(std::string_view text);
/// "0-3,8"; "" for none.
std::string cpuListText(const cpu_set_t& set);

/// Processors that the calling thread may run on; empty where the system does not say.
std::optional<cpu_set_t> ownProcessors();

inline cpu_set_t operator&(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return both;
}

}  // namespace tutti
