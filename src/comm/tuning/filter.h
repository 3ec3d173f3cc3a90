// NCCL_ALGO and NCCL_PROTO: which algorithms and protocols each collective may use.
//
//   value := entry { ";" entry }     entry := [ func ":" ] [ "^" ] name { "," name }
//
// Only the first entry may leave out its function and then speaks for all; later entries replace the selection of their
// function; ^ turns a list into everything but it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/work.h"

namespace tutti::comm {

inline constexpr int kTunedFuncs = 5;  ///< Broadcast, Reduce, AllGather, ReduceScatter, AllReduce, in this order

/// Auto: taken only where it is known to be safe. Numbers as the matrix in the log shows them.
enum class Permission : std::uint8_t { No = 0, Yes = 1, Auto = 2 };

/// What the two settings allow, by device::Func. Equal on all ranks, or the communicator does not come up.
struct TuningFilter {
  std::array<std::array<Permission, device::kAlgorithms>, kTunedFuncs> algorithms{};
  std::array<std::array<Permission, device::kProtocols>, kTunedFuncs> protocols{};
  std::string algoText;  ///< NCCL_ALGO as it was given, for messages; "": not set
  std::string protoText;

  bool restricted() const { return !algoText.empty() || !protoText.empty(); }
};

/// Reads both values; "" allows everything. Algorithms are Auto where nothing was said and Yes where they were named;
/// PAT runs on nodes of several ranks, and LL128 on links of unknown kind, only where it is Yes.
/// ncclInvalidUsage, with the word that is wrong: unknown names, or a later entry without its function.
Result<TuningFilter> parseTuningFilter(std::string_view algo, std::string_view proto);

/// The lines of the log that begin with "Enabled NCCL Func/Proto/Algo Matrix:".
std::vector<std::string> filterMatrix(const TuningFilter& filter);

/// The name as logs and tools know it: "RING", "COLLNET_DIRECT", "ONESHOT"; "LL", "LL128", "SIMPLE".
std::string_view logName(device::Algorithm algorithm);
std::string_view logName(device::Protocol protocol);

/// Number of the algorithm, or of the protocol, that a word of a setting names, in any case.
std::optional<std::size_t> algorithmFrom(std::string_view word);
std::optional<std::size_t> protocolFrom(std::string_view word);
/// All such words, with commas between them.
std::string allAlgorithmNames();
std::string allProtocolNames();

}  // namespace tutti::comm
