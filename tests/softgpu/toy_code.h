// What toy images hold: those of toy_ptx.cc, which stands for libsoftgpu-ptx.so in the tests of the two libraries.
#pragma once

#include <cstdint>

namespace tutti::softgpu::test {

/// A text that it takes for PTX.
inline constexpr const char* kToyImage = "toy image";

/// How nvcc wraps an image in a program.
struct ToyWrapper {
  std::uint32_t magic = 0x466243b1;
  std::uint32_t version = 1;
  const void* image = nullptr;
  const void* unused = nullptr;
};

// The kernels: functions of `index`, `out` and more.
//   fill:    out[i] = base + i + small + real, for i the number of the thread in the grid; whole blocks
//   meet:    out[i] = the sum of the numbers of its block's threads, by barriers and an exchange
//   count:   adds 1 to the variable `counter` by way of the variable `pointer`; out[0] = what it is then
//   shape:   out = block and grid dimensions, dynamic shared bytes; whole blocks
//   shared:  fills its shared memory, dynamic part included, and writes the number of its bytes to out[block]; whole
//   crowd:   out[0] = the most blocks that were there at once; each pauses a few times
//   gather:  every thread waits until all blocks have begun, and says that it only looks; out[0] = blocks
//   hurry:   the same, but claims to do more than look
//   broken:  cannot be translated
/// Parameters of `fill`, at the offsets that its image tells.
struct ToyFill {
  std::uint32_t* out;
  std::uint32_t base;
  std::uint8_t small;
  double real;
};

inline constexpr std::uint32_t kToyCounter = 5;          ///< what `counter` is in the beginning
inline constexpr std::uint64_t kToyVariableBytes = 320;  ///< of an image
inline constexpr std::uint32_t kToyStaticBytes = 1024;   ///< of shared memory, of `shared`

}  // namespace tutti::softgpu::test

extern "C" {
/// Images that are loaded.
int toyImages(void);
/// Kernels made so far.
int toyKernelsMade(void);
}
