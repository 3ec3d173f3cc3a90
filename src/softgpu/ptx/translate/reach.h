// What a kernel reaches: functions and shared variables; and what its threads may wait for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "softgpu/ptx/text/program.h"
#include "softgpu/ptx/translate/layout.h"

namespace tutti::softgpu::ptx {

/// How a branch that leads back is to be paused at: whoever polls must let others run.
enum class Pause : std::uint8_t {
  Never,   ///< nothing in the loop can see what another thread does
  Seldom,  ///< the loop does other things as well, or polls where the text does not show it
  Always   ///< it polls, and does nothing else
};

struct KernelReach {
  std::vector<const Function*> functions;  ///< the kernel first
  std::map<const Variable*, std::uint32_t> shared;
  std::uint32_t sharedBytes = 0;  ///< dynamic shared memory begins here
  std::uint32_t localBytes = 0;   ///< of all its functions
  bool waits = false;             ///< a thread may wait for another, or trap: it needs a fiber
  bool calledLook = false;        ///< a function that is called reads what other threads may write
};

/// What a kernel reaches, but for its loops: `calledLook` is false, and `waits` knows only of instructions that wait.
/// Throws TextError where a function is called that is not there.
KernelReach reachOf(const Program& program, const VariableLayout& layout, const Function& kernel);

/// Adds what the loops of its functions may see of other threads: it takes long, and only kernels that run need it.
void addLoops(KernelReach& reach);

/// For each statement of the function that branches back, whether and how to pause there. `callsLook`: what it calls
/// may read what other threads write.
std::map<std::size_t, Pause> pausesOf(const Function& function, bool callsLook);

/// Whether an access is to more than 8 bytes that others may read or write meanwhile: the lanes of a warp make theirs
/// together, as one access to a line.
bool accessesLine(const Instruction& instruction);

/// Functions that code may call without defining them: malloc, free, vprintf, __assertfail.
bool isBuiltIn(std::string_view function);

}  // namespace tutti::softgpu::ptx
