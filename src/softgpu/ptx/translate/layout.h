// Where the variables of a program lie, and what stands for the addresses of its functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/ptx/text/program.h"
#include "softgpu/ptx_library.h"

namespace tutti::softgpu::ptx {

/// `.global` and `.const` variables, one after the other. Code is made before anybody knows where they will lie, and
/// serves all devices: it adds an offset to HostThread::variables.
struct VariableLayout {
  std::map<std::string, std::uint64_t, std::less<>> offsets;
  std::vector<PtxVariable> places;  ///< names are those of the program
  std::vector<PtxRelocation> relocations;
  std::vector<char> initial;
  /// A function's address is a number: code compiled for one kernel has no address for those of another. In the order
  /// of the numbers, from kFirstFunctionNumber on, kFunctionNumberStep apart.
  std::vector<std::string> addressed;

  std::optional<std::uint64_t> functionNumber(std::string_view name) const;
};

inline constexpr std::uint64_t kFirstFunctionNumber = 64;
inline constexpr std::uint64_t kFunctionNumberStep = 16;

/// Throws TextError for variables that nobody defines and initial values that mean nothing.
VariableLayout layOut(const Program& program);

/// Offsets of parameters in their block of bytes, and the block's size.
struct ParameterLayout {
  std::vector<PtxParam> params;
  std::uint32_t bytes = 0;
};
ParameterLayout layOut(const std::vector<Variable>& parameters);

inline std::uint64_t alignUp(std::uint64_t offset, std::uint64_t align) {
  return (offset + align - 1) & ~(align - 1);
}

}  // namespace tutti::softgpu::ptx
